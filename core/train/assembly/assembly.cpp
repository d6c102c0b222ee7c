#include "core/train/assembly/assembly.h"

#include <unistd.h>
#include <algorithm>
#include <random>
#include <utility>

#include <ATen/Context.h>

#include <titan/log.h>
#include <titan/memory_use.h>
#include <titan/program/clock.h>
#include <titan/program/environment.h>

#include "core/config/selection/component_error.h"
#include "core/config/selection/make_selected.h"
#include "core/config/selection/parallelism_selection.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"
#include "core/runtime/groups/process_groups.h"
#include "core/runtime/groups/simulated_mesh.h"
#include "core/runtime/tensors/huge_pages.h"
#include "core/runtime/tensors/meta_memory.h"
#include "core/train/assembly/initial_values.h"
#include "core/train/assembly/replica_run.h"
#include "core/train/assembly/resume.h"
#include "core/train/assembly/run_data.h"
#include "core/train/assembly/run_dtypes.h"
#include "core/train/assembly/run_folder.h"
#include "core/train/assembly/run_identity.h"
#include "core/train/assembly/run_loss.h"
#include "core/train/logging/logger_context.h"
#include "core/train/step/observations.h"
#include "core/train/step/step_parts.h"

namespace titan::core {
namespace {

void set_determinism(const DebugSection& debug) {
  if (!debug.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, debug.deterministic_warn_only);
  at::globalContext().setDeterministicFillUninitializedMemory(
      false);  // every byte is written before it is read
}

/// The same on all ranks: the checkpoint's, if its data order continues; else the configured one;
/// else rank 0 draws it.
uint64_t choose_seed(const DebugSection& debug, const StartPoint& start, Rendezvous& rendezvous) {
  if (start.loads_data) {
    if (debug.seed && static_cast<uint64_t>(*debug.seed) != start.manifest.seed &&
        rendezvous.launch().rank == 0)
      log::warn("debug.seed = " + std::to_string(*debug.seed) +
                " is ignored: the order of the data continues with the checkpoint's seed " +
                std::to_string(start.manifest.seed));
    return start.manifest.seed;
  }
  if (debug.seed) return static_cast<uint64_t>(*debug.seed);
  std::random_device random;
  const std::string seed =  // 32 bits: short enough to be typed again
      rendezvous.from_rank_zero("seed", std::to_string(random()));
  log::info("debug.seed is not set; this run uses " + seed);
  return std::stoull(seed);
}

/// Makes the loggers that log on this rank, and those that observe tensors, on every rank.
void make_loggers(Run& run, const JobConfig& config, Registry& registry, bool logs) {
  const LoggerContext context =
      logger_context(config.metrics, Environment::of_process(), ::isatty(STDOUT_FILENO) == 1);
  auto observations = std::make_unique<Observations>();
  for (const Selection& chosen : config.loggers) {
    if (!logs && !observes_tensors(registry, chosen)) continue;
    const std::shared_ptr<Logger> logger = make_selected<Logger>(registry, chosen, context);
    if (logs) run.loggers.add(chosen.name, logger);
    on_behalf_of(chosen, [&] { observations->add(chosen, logger); });
  }
  if (!observations->empty())
    run.watchers.add({}, as_watcher(std::move(observations), run.mesh, *run.device, run.loggers));
}

/// `tokenizer`: null in a dry run that reads no files. `watch`: null for a simulated rank.
void make_watchers(Run& run, const JobConfig& config, Registry& registry,
                   const Tokenizer* tokenizer, FailureWatch* watch) {
  WatcherContext context{run.mesh, *run.device, run.loggers, config.job.dump_folder};
  if (tokenizer && !missing_tokenizer(*tokenizer)) context.tokenizer = tokenizer;
  if (compute_dtype(config) == at::kHalf)
    context.smallest_gradient_scale = config.training.loss_scaling.minimum;
  if (watch) context.end_run = [watch](const std::string& error) { watch->end_run(error); };
  for (const Selection& chosen : config.watchers)
    run.watchers.add(chosen, make_selected<Watcher>(registry, chosen, context));
}

/// Checkpoints and transfers between ranks take all states from the optimizer.
void add_states_of_transforms(Run& run) {
  if (run.stateful.empty()) return;
  if (!dynamic_cast<StatefulOptimizer*>(run.optimizer.get())) {
    std::vector<std::unique_ptr<Optimizer>> one;
    one.push_back(std::move(run.optimizer));
    run.optimizer = std::make_unique<OptimizerSet>(std::move(one));
  }
  for (StatefulOptimizer* transform : run.stateful)
    dynamic_cast<StatefulOptimizer&>(*run.optimizer).add_states_of(*transform);
}

/// Frozen parameters get no optimizer. In a dry run either component may be unknown.
void add_optimizer(Run& run, const JobConfig& config, Registry& registry) {
  if (!config.lr_scheduler.name.empty())
    run.lr_scheduler = make_selected<LrScheduler>(registry, config.lr_scheduler,
                                                  LrSchedulerContext{config.training.steps});
  OptimizerContext context{run.part->parameters(), &run.mesh, run.seed};
  std::erase_if(context.parameters, [](const Parameter* p) { return p->is_frozen(); });
  if (config.optimizer_section.early_step_in_backward) {
    auto optimizers = make_single_optimizers(config, registry, context);
    if (optimizers.size() < context.parameters.size()) return;
    auto early = std::make_unique<EarlyOptimizer>(context.parameters, std::move(optimizers));
    run.early_optimizer = early.get();
    run.optimizer = std::move(early);
  } else {
    run.optimizer = make_optimizer(config, registry, context);
  }
  if (!run.optimizer) return;
  add_states_of_transforms(run);
  StepParts parts(config);
  parts.add(*run.optimizer, config.optimizer);
  run.members.insert(run.members.end(), parts.members().begin(), parts.members().end());
  run.loss_scaler =
      std::make_unique<LossScaler>(config.training.loss_scaling, compute_dtype(config) == at::kHalf,
                                   run.mesh.rank() == 0, run.state);
}

FolderStart folder_start(const StartPoint& start, const TrainState& state) {
  if (state.step == 0) return FolderStart::from_nothing;
  const bool goes_back = start.is_own && !start.is_restart && start.lineage.branch > 0;
  return goes_back ? FolderStart::new_branch : FolderStart::continuation;
}

enum Mode : unsigned {
  kTrain = 1,      ///< a whole run
  kWeights = 2,    ///< the trained network alone
  kSimulated = 4,  ///< one rank on the meta device, without files
  kAlways = 7,
};

/// The inputs of the stages and the values that they pass on. `rendezvous`, `watch` and `start`:
/// null for simulated ranks.
struct Assembly {
  Run& run;
  const JobConfig& config;
  Registry& registry;
  Rendezvous* rendezvous = nullptr;
  FailureWatch* watch = nullptr;
  const StartPoint* start = nullptr;
  int simulated_rank = 0;
  const Tokenizer* tokenizer = nullptr;  ///< for watchers; null: no file is read
  StartPoint reference = {};             ///< the weights of the reference model
  RunInfo info = {};

  bool is_first_rank() const { return rendezvous->launch().rank == 0; }
};

void connect(Assembly& a) {
  const DebugSection& debug = a.config.debug;
  set_determinism(debug);
  a.run.device =
      make_selected<Device>(a.registry, a.config.device,
                            DeviceContext{.local_rank = a.rendezvous->launch().local_rank,
                                          .deterministic = debug.deterministic});
  a.run.mesh = connect_mesh(a.config.layout.grid, *a.rendezvous, *a.run.device,
                            std::make_shared<dist::Recorder>(a.config.comm.trace_buf_size));
  a.watch->watch(a.run.mesh);
}

void simulate_ranks(Assembly& a) {
  MetaMemory::start_counting();
  a.run.device = make_meta_device();
  a.run.mesh = simulated_mesh(a.config.layout.grid, a.simulated_rank,
                              {.receives_beside = runs_on_cpu(a.config)});
}

void make_reference(Assembly& a) {
  check_reference(a.run, a.config);
  if (reference_output(a.run) == ReferenceOutput::none) return;
  if (a.rendezvous) a.reference = find_reference(a.config, *a.rendezvous);
  add_reference(a.run, a.config, a.registry,
                a.rendezvous ? a.reference.folder : folder_of_reference(a.config));
}

void check_stored(Assembly& a) {
  check_weights(a.run, *a.start, a.config, a.registry);
  if (a.run.reference)
    check_weights(*a.run.reference, a.reference, *a.run.reference_job, a.registry);
}

void describe_run(Assembly& a) {
  const LaunchEnv& launch = a.rendezvous->launch();
  a.run.state = state_at(*a.start);
  const std::string time = a.rendezvous->from_rank_zero("start", std::to_string(wall_seconds()));
  a.info = {.dump_folder = a.config.job.dump_folder,
            .description = a.config.job.description,
            .config = a.config.resolved,
            .resumed_step = a.run.state.step,
            .rank = launch.rank,
            .world_size = launch.world_size,
            .start_time = std::stod(time),
            .num_steps = a.config.training.steps,
            .tokens_per_step = a.config.layout.global_batch_size * a.config.training.seq_len,
            .num_parameters = a.run.part->num_parameters()};
}

void fill_reference(Assembly& a) {
  if (!a.run.reference) return;
  if (a.is_first_rank()) log::info("the reference model:");
  initialize_or_allocate(*a.run.reference, a.reference, *a.run.reference_job);
  load_state(*a.run.reference, a.reference, a.rendezvous->launch());
}

void use_huge_pages(Assembly& a) {
  std::vector<at::Tensor> weights;
  for (const nn::Parameter* parameter : a.run.part->parameters())
    weights.push_back(parameter->shard());
  prefer_huge_pages(weights);
}

void simulate_weights(Assembly& a) {
  const MemoryUseScope use(MemoryUse::parameters);
  const at::ScalarType dtype = parameter_dtype(a.config);
  a.run.part->materialize(c10::kMeta, dtype, 0);
  if (a.run.reference) a.run.reference->part->materialize(c10::kMeta, dtype, 0);
}

void make_checkpointer(Assembly& a) {
  Run& run = a.run;
  run.checkpoints = std::make_unique<Checkpointer>(
      a.config,
      Saved{*run.part, *run.optimizer, *run.loader, *run.model, *run.tokenizer, run.mesh,
            *run.device, run.seed, run.exports, [&run] { return run.watchers.states(); },
            a.start->lineage},
      *a.rendezvous);
}

void join_replicas(Assembly& a) {
  if (!a.run.replicas) return;
  a.run.replica_run =
      make_replica_run(a.run, a.config, run_identity(a.config, a.registry), *a.start);
  a.run.replicas->join(*a.run.replica_run, a.run.mesh);
}

struct Stage {
  const char* name;
  unsigned modes;
  void (*build)(Assembly&);
};

// clang-format off
/// In the required order: all checks come before anything has memory, and nothing is written to
/// disk before all of them have passed.
const Stage kStages[] = {
    {"seed", kTrain, [](Assembly& a) {
       a.run.seed = choose_seed(a.config.debug, *a.start, *a.rendezvous); }},
    {"device and groups", kTrain | kWeights, connect},
    {"simulated device and groups", kSimulated, simulate_ranks},
    {"tokenizer", kTrain | kWeights, [](Assembly& a) {
       if (!a.run.tokenizer) a.run.tokenizer = open_tokenizer(a.config, a.registry);
       a.tokenizer = a.run.tokenizer.get(); }},
    {"watchers", kTrain | kSimulated, [](Assembly& a) {
       make_watchers(a.run, a.config, a.registry, a.tokenizer, a.watch); }},
    {"chat template", kTrain, [](Assembly& a) {
       a.run.chat_template = open_chat_template(a.config, a.registry); }},
    {"model", kAlways, [](Assembly& a) { build_model(a.run, a.config, a.registry); }},
    {"size of the vocabulary", kTrain | kWeights, [](Assembly& a) {
       check_vocabulary(*a.run.tokenizer, *a.run.model, a.config); }},
    {"data", kTrain, [](Assembly& a) { open_data(a.run, a.config, a.registry, *a.start); }},
    {"loggers", kTrain | kSimulated, [](Assembly& a) {
       const bool logs = a.rendezvous && (a.is_first_rank() || a.config.metrics.save_for_all_ranks);
       make_loggers(a.run, a.config, a.registry, logs); }},
    {"transforms", kAlways, [](Assembly& a) { apply_transforms(a.run, a.config, a.registry); }},
    {"reference model", kTrain | kSimulated, make_reference},
    {"validation", kTrain, [](Assembly& a) { make_validator(a.run, a.config, a.registry); }},
    {"stored weights", kTrain | kWeights, check_stored},
    {"description", kTrain, describe_run},
    {"folder of the run", kTrain, [](Assembly& a) {
       if (a.is_first_rank()) check_run_folder(a.config); }},
    {"reading ahead", kTrain, [](Assembly& a) { a.run.loader->start(); }},
    {"weights of the reference model", kTrain, fill_reference},
    {"initial weights", kTrain | kWeights, [](Assembly& a) {
       initialize_or_allocate(a.run, *a.start, a.config); }},
    {"huge pages", kWeights, use_huge_pages},
    {"simulated weights", kSimulated, simulate_weights},
    {"optimizer", kTrain | kSimulated, [](Assembly& a) {
       add_optimizer(a.run, a.config, a.registry); }},
    {"files of the run", kTrain, [](Assembly& a) {
       if (a.is_first_rank())
         prepare_run_folder(a.config, folder_start(*a.start, a.run.state), a.run.folder_lock); }},
    {"stored state", kTrain | kWeights, [](Assembly& a) {
       load_state(a.run, *a.start, a.rendezvous->launch()); }},
    {"checkpoints", kTrain, make_checkpointer},
    {"replica groups", kTrain, join_replicas},
    {"start of watchers", kTrain, [](Assembly& a) {
       Run& run = a.run;
       run.watchers.start({*run.part, *run.optimizer, run.state.step, run.first_row, *run.model,
                           *run.executor}); }},
    {"other ranks", kTrain | kWeights, [](Assembly& a) {
       a.run.mesh.group("world").barrier(); }},
    {"start of loggers", kTrain, [](Assembly& a) {
       a.run.unlisted_plugins = a.registry.unlisted_plugins();
       a.run.loggers.start(a.info); }},
};
// clang-format on

void build(Mode mode, Assembly assembly) {
  for (const Stage& stage : kStages) {
    if (!(stage.modes & mode)) continue;
    if (assembly.watch) assembly.watch->set_stage(stage.name);
    stage.build(assembly);
  }
}

}  // namespace

void check_vocabulary(const Tokenizer& tokenizer, const Model& model, const JobConfig& config) {
  TITAN_CHECK(missing_tokenizer(tokenizer) || tokenizer.vocab_size() <= model.vocab_size(), config,
              "the tokenizer in '", config.model.hf_assets_path, "' has ", tokenizer.vocab_size(),
              " ids, but model '", config.model_plugin.name, "' has room for ", model.vocab_size(),
              "; set model.vocab_size or choose another model.hf_assets_path");
}

void assemble(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
              FailureWatch& watch, const StartPoint& start) {
  build(kTrain, {run, config, registry, &rendezvous, &watch, &start});
}

void assemble_weights(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
                      FailureWatch& watch, const StartPoint& start) {
  build(kWeights, {run, config, registry, &rendezvous, &watch, &start});
}

std::unique_ptr<Run> assemble_simulated(const JobConfig& config, Registry& registry, int rank,
                                        const Tokenizer* tokenizer) {
  auto run = std::make_unique<Run>();
  build(kSimulated, {.run = *run,
                     .config = config,
                     .registry = registry,
                     .simulated_rank = rank,
                     .tokenizer = tokenizer});
  return run;
}

}  // namespace titan::core
