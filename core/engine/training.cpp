#include "core/engine/training.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/sum.h>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/stop_request.h>
#include <titan/shown_text.h>

#include <titan/program/stop_signals.h>
#include "core/config/selection/component_error.h"
#include "core/engine/rounds.h"
#include "core/engine/run_engine.h"
#include "core/estimate/memory_limit.h"
#include "core/exchange/model_options.h"
#include "core/fault_tolerance/abort_groups.h"
#include "core/runtime/build_info.h"
#include "core/runtime/groups/failure_policy.h"
#include "core/train/assembly/run_identity.h"
#include "core/train/explained_failure.h"
#include "core/train/trainer.h"

namespace titan::core {
namespace {

std::string signal_name(int signal) {
  if (signal > kStopRequest) return "a plugin";
  const char* name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

/// After "stopped by SIGTERM after step 7".
const char* what_is_saved(StopReason reason) {
  switch (reason) {
    case StopReason::saved:
      return ", which is saved; run the same command again to resume";
    case StopReason::saved_by_others:
      return "; another replica group saves the checkpoints; run the same command again to resume";
    case StopReason::stopped:
    case StopReason::all_steps_done:
      break;
  }
  return "; nothing is saved, because checkpoint.enable = false";
}

int finish(StopReason reason, const Trainer& trainer) {
  const std::string step = std::to_string(trainer.state().step);
  if (reason == StopReason::all_steps_done) {
    log::info("training completed after step " + step);
    return kExitDone;
  }
  const int signal = trainer.stop_signal();
  log::info("stopped by " + signal_name(signal) + " after step " + step + what_is_saved(reason));
  if (signal > kStopRequest) return signal - kStopRequest;
  if (signal == SIGINT) return kExitInterrupted;  // Ctrl-C: no restart by a launcher
  return reason == StopReason::stopped ? kExitTerminated : kExitRequeue;
}

/// Checks the job of a finished run, whose mistakes "nothing is left to do" would hide. Throws when
/// the job could not be started, warns when its model differs from the saved one.
void check_finished(const JobConfig& config, Registry& registry, const StartPoint& done, int rank) {
  Diagnostics wrong;
  std::unique_ptr<Run> simulated;
  {
    const log::Quiet quiet;
    simulated = dry_run(config, registry, {.rank = rank}, wrong);
  }
  if (!wrong.can_start()) throw ConfigError(wrong);
  std::error_code ignored;
  if (!simulated || !std::filesystem::exists(done.folder / "manifest.json", ignored)) return;
  const std::string differs =
      check_model_options(read_checkpoint_manifest(done.folder).config, config, *simulated->model,
                          registry, "'" + done.folder.string() + "'");
  if (!differs.empty() && rank == 0) log::warn(differs);
}

/// Builds the run. Returns false, and logs why, when nothing is left to train.
bool build(Run& run, JobConfig& config, Registry& registry, Rendezvous& rendezvous,
           FailureWatch& watch) {
  const int rank = rendezvous.launch().rank;
  rendezvous.agree(rendezvous.is_alone() ? RunIdentity() : run_identity(config, registry));
  fit_memory_limit(config, registry, rank);
  if (rank == 0) run.folder_lock.take_existing(config.job.dump_folder, "job.dump_folder");
  const StartPoint start_point = find_start(config, rendezvous);
  if (start_point.kind == StartPoint::Kind::done) {
    check_finished(config, registry, start_point, rank);
    log::info("nothing is left to do: the weights of the last step are in '" +
              start_point.folder.string() +
              "'; raise training.steps or choose another "
              "job.dump_folder to train more");
    return false;
  }
  assemble(run, config, registry, rendezvous, watch, start_point);
  return true;
}

/// Turns the microbatches of a loop into a step of this rank. Rows are numbered as by the loader.
SourcedStep step_of(LoopStep own, const dist::Mesh& mesh, int64_t number) {
  TITAN_CHECK(!own.microbatches.empty(), plugin, "the loop gives no microbatch for step ", number);
  SourcedStep step{.batches = {.microbatches = std::move(own.microbatches)},
                   .scalars = std::move(own.scalars)};
  int64_t rows = 0;
  for (const Batch& batch : step.batches.microbatches) rows += batch.tokens.size(0);
  int64_t first = rows * mesh.batch_rank();
  for (Batch& batch : step.batches.microbatches) {
    step.batches.num_local_valid_tokens +=
        batch.labels.ne(Batch::kIgnoredLabel).sum().item<int64_t>();
    batch.places.first_row = first;
    first += batch.tokens.size(0);
  }
  return step;
}

/// The part of a run after the rendezvous. Returns the exit code.
int build_and_train(std::unique_ptr<Run>& run, JobConfig& config, Registry& registry,
                    Rendezvous& rendezvous, FailureWatch& watch, StopSignals& signals, double start,
                    TrainingLoop* loop, const std::function<void()>& when_built = {}) {
  const int rank = rendezvous.launch().rank;
  bool is_built = false;
  try {
    is_built =
        with_places(config, [&] { return build(*run, config, registry, rendezvous, watch); });
  } catch (const ConfigError& e) {
    refuse(config, registry, {.rank = rank}, e.diagnostics());
  }
  if (!is_built) return kExitDone;
  signals.begin_to_ask();
  if (when_built) when_built();
  if (config.checkpoint.create_seed_checkpoint) {
    run->checkpoints->save_seed();
    run->loggers.finish(RunOutcome::finished);
    return kExitDone;
  }
  if (rank == 0) {
    log::info("model " + config.model.name + " " + config.model.flavor + ": " +
              with_commas(run->part->num_parameters()) + " parameters, " +
              run->device->description());
    log::info("training " + std::to_string(config.training.steps) + " steps of " +
              std::to_string(config.layout.global_batch_size) + " x " +
              std::to_string(config.training.seq_len) + " tokens; output in " +
              config.job.dump_folder + "; ready after " +
              std::to_string(static_cast<int64_t>(1000 * (monotonic_seconds() - start))) + " ms");
  }
  const double begin = wall_seconds() - (monotonic_seconds() - start);
  std::optional<RunEngine> engine;
  StepSource source = [&](int64_t) { return SourcedStep{run->loader->next_step()}; };
  if (loop) {
    engine.emplace(*run, config, "");
    engine->connect(rendezvous);
    source = [&](int64_t number) {
      return step_of(loop->next(*engine, number), run->mesh, number);
    };
    loop->begin(*engine, run->state.step);
  }
  Trainer trainer(*run, config, watch, begin, std::move(source));
  const StopReason reason = trainer.run();
  if (loop) loop->end(*engine);
  run->mesh.group("world").barrier();  // others may still use this rank's connections
  return finish(reason, trainer);
}

void announce(const JobConfig& config, const LaunchEnv& launch) {
  if (launch.rank != 0) return;
  log::info(build_summary());
  log::info("starting job: " + config.job.description);
  if (launch.world_size > 1) log::info(describe(launch));
  if (config.job.print_config)
    log::info("configuration:\n" + printable_json(to_json(config.resolved, 2)));
}

FlightFiles flight_files(const JobConfig& config) {
  return {config.job.dump_folder + "/" + config.comm.save_traces_folder,
          config.comm.save_traces_file_prefix};
}

/// One round of `train_in_rounds`. A failure destroys all that the round made.
int train_round(Rounds& rounds, JobConfig config, Registry& registry, const LaunchEnv& launch,
                double start, StopSignals& signals) {
  if (launch.world_size > 1) log::set_prefix("[rank" + std::to_string(launch.rank) + "]");
  announce(config, launch);
  Rendezvous rendezvous(launch, std::chrono::seconds(config.comm.init_timeout_seconds),
                        rounds.is_interrupted());
  auto run = std::make_unique<Run>();
  FailureWatch watch(rendezvous, std::make_unique<AbortGroups>(/*ends_process=*/false),
                     flight_files(config));
  int code = kExitDone;
  rounds.work(run, rendezvous, watch, [&] {
    code = build_and_train(run, config, registry, rendezvous, watch, signals, start, nullptr,
                           [&] { rounds.built(); });
  });
  return code;
}

/// Trains until a round is done, or until the launcher ends this process.
int train_in_rounds(ControlEnd control, const JobConfig& config, Registry& registry,
                    const LaunchEnv& launch, double start, StopSignals& signals) {
  Rounds rounds(std::move(control), launch);
  for (int attempt = 0;; ++attempt) {
    const Rounds::Next next = rounds.wait();
    if (!next.launch) return next.exit_code;
    const bool is_first = attempt == 0 && next.launch->restart_count == 0;
    try {
      return train_round(rounds, config, registry, *next.launch,
                         is_first ? start : monotonic_seconds(), signals);
    } catch (const Error& e) {
      if (!rounds.failed(e)) throw;
    }
  }
}

}  // namespace

void refuse(const JobConfig& config, Registry& registry, const DryRunOptions& options,
            Diagnostics found) {
  dry_run(config, registry, options, found);
  throw ConfigError(found);
}

void log_messages(const std::vector<Diagnostic>& messages) {
  for (const Diagnostic& message : messages)
    message.severity == Severity::note ? log::info(message.message)
                                       : log::warn(render_for_log(message));
}

int start_training(JobConfig config, Registry& registry, const LaunchEnv& launch, double start,
                   TrainingLoop* loop) {
  StopSignals signals(StopSignals::First::ends);
  if (std::optional<ControlEnd> control = loop ? std::nullopt : ControlEnd::of_process())
    return train_in_rounds(std::move(*control), config, registry, launch, start, signals);
  announce(config, launch);
  Rendezvous rendezvous(launch, std::chrono::seconds(config.comm.init_timeout_seconds));
  auto run = std::make_unique<Run>();
  // uses the run's mesh, so destroyed before it
  FailureWatch watch(rendezvous, std::make_unique<EndProcess>(), flight_files(config));
  int code = kExitDone;
  with_failures_explained(run, rendezvous, watch, [&] {
    code = build_and_train(run, config, registry, rendezvous, watch, signals, start, loop);
  });
  return code;
}

}  // namespace titan::core
