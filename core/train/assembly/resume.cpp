#include "core/train/assembly/resume.h"

#include <algorithm>
#include <set>
#include <string>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include "core/checkpoint/part_loader.h"
#include "core/checkpoint/rank_state.h"
#include "core/checkpoint/reader.h"
#include "core/exchange/hf_config.h"
#include "core/exchange/model_options.h"
#include "core/exchange/quantised.h"
#include "core/exchange/weight_copies.h"
#include "core/exchange/weight_names.h"
#include "core/runtime/groups/run_on_all_or_fail.h"
#include "core/train/assembly/changed_settings.h"
#include "core/train/assembly/initial_values.h"

namespace titan::core {
namespace {

using Kind = StartPoint::Kind;

std::string place_of(const StartPoint& start) {
  const std::string folder = "'" + start.folder.string() + "'";
  if (start.kind != Kind::checkpoint) return folder;
  return "the checkpoint in " + folder + " (model " + start.manifest.model + " " +
         start.manifest.flavor + ")";
}

/// Checks at the start that the model can be exported, rather than when the run ends and saves it.
void check_exportable(const Run& run, const std::string& model_name) {
  std::set<std::string> named;
  for (const auto& rule : names_of(*run.model, model_name, Naming::hugging_face).rules)
    named.insert(rule.ours);
  for (const ParameterInfo& parameter : run.part->all_parameters())
    TITAN_CHECK(
        named.contains(parameter.name) || parameter.is_state() || is_absorbed(run, parameter.name),
        config, "the model cannot be saved for others (checkpoint.last_save_in_hf): '",
        parameter.name, "', which a converter has added, has no Hugging Face name");
  const std::string left_out = omitted_states_text(*run.model, *run.part, model_name);
  if (!left_out.empty() && run.mesh.rank() == 0) log::warn(left_out);
}

void warn_of_initial_states(const Run& run, const StartPoint& start, const std::string& place) {
  const std::set<std::string> names = states_left_initial(run, start);
  if (names.empty() || run.mesh.rank() != 0) return;
  log::warn(place + " holds no '" + *names.begin() + "'" +
            (names.size() > 1 ? " nor " + std::to_string(names.size() - 1) + " more states" : "") +
            ": they begin with their initial values");
}

/// The parameter in "optim.exp_avg.layers.0.attention.wq.weight".
std::string_view parameter_of(std::string_view state) {
  state.remove_prefix(kOptimizerPrefix.size());
  return state.substr(std::min(state.find('.'), state.size() - 1) + 1);
}

/// The stored states must be those of this optimizer. Each rank of a pipeline checks the parameters
/// of its own layers; states of parameters that no layer has are an error on every rank.
void check_states(const std::vector<StateTensor>& states, const Run& run, const StartPoint& start) {
  const std::string hint =
      "; to start with a fresh optimizer set checkpoint.exclude_from_loading = [\"optimizer\"]";
  try {
    check_fits(start.index, states, place_of(start));
    std::set<std::string_view> known, elsewhere;
    for (const StateTensor& state : states) known.insert(state.name);
    for (const ParameterInfo& parameter : run.part->all_parameters())
      elsewhere.insert(parameter.name);
    for (const nn::Parameter* parameter : run.part->parameters())
      elsewhere.erase(parameter->name());
    for (const auto& [name, tensor] : start.index.tensors)
      TITAN_CHECK(!name.starts_with(kOptimizerPrefix) || known.contains(name) ||
                      elsewhere.contains(parameter_of(name)),
                  data, place_of(start), " holds '", name,
                  "', which this run's optimizer does not have");
  } catch (const Error& e) {
    throw Error(e.kind(), e.message() + hint);
  }
}

std::string shown_model(const JobConfig& config) {
  return config.model.name + " " + config.model.flavor;
}

/// The weights that the run starts from. Throws as find_weights.
std::vector<FoundWeight> weights_at(const Run& run, const StartPoint& start,
                                    const std::string& model_name) {
  WeightNames names = names_at(run, start, model_name);
  names.optional = left_initial(run, start);
  return find_weights(*run.part, names, start.index, place_of(start), model_name);
}

/// Quantised weights are accepted only if the job allows it.
void check_quantised(const std::vector<FoundWeight>& found, const StartPoint& start,
                     const CheckpointSection& section) {
  if (section.initial_load_in_hf_quantized) return;
  for (const FoundWeight& weight : found)
    for (const TensorPart& part : weight.parts)
      TITAN_CHECK(encoding_of(part, start.index) == Encoding::plain, config, place_of(start),
                  " holds quantised weights, such as ", part.source, " (",
                  start.index.tensors.find(part.source)->second.dtype,
                  "); to start from them set checkpoint.initial_load_in_hf_quantized = true");
}

/// Logs the stored state that the job leaves out, and the settings that differ from those of the
/// checkpoint. Both are allowed.
void tell_changes(const StartPoint& start, const JobConfig& config, const std::string& place) {
  const bool continues = start.is_own ? start.manifest.step > 0 : start.loads_train_state;
  if (!continues) return;
  std::string anew;
  const auto add = [&](bool is_loaded, const char* part) {
    if (!is_loaded) anew += std::string(anew.empty() ? "" : ", ") + part;
  };
  add(start.loads_optimizer, "the optimizer's states");
  add(start.loads_lr, "the learning rate schedule");
  add(start.loads_data, "the data's position");
  add(start.loads_train_state, "the number of steps and tokens");
  if (!anew.empty()) log::info("checkpoint.exclude_from_loading: " + anew + " begin anew");
  std::string changed;
  for (const std::string& setting : changed_settings(start.manifest, config))
    changed += (changed.empty() ? "" : ", ") + setting;
  if (!changed.empty())
    log::info("the run continues with other settings than those of " + place + ": " + changed);
}

void restore_generators(const Run& run, const StartPoint& start, const LaunchEnv& launch) {
  const c10::Device device = run.device->device();
  std::optional<Value> saved;
  if (start.loads_train_state) saved = read_random_state(start, launch.rank, launch.world_size);
  if (saved)
    restore_random_state(*saved, device);
  else
    seed_generators(run.seed, run.state.step, launch.rank, device);
}

}  // namespace

TrainState state_at(const StartPoint& start) {
  TrainState state;
  if (start.loads_train_state) {
    state.step = start.manifest.step;
    state.tokens_seen = start.manifest.tokens_seen;
    state.tokens_learned = start.manifest.tokens_learned;
    state.loss_scale = start.manifest.loss_scale;
    state.loss_scale_steps = start.manifest.loss_scale_steps;
  }
  if (start.loads_lr) state.lr_step = start.manifest.lr_step;
  return state;
}

void check_weights(const Run& run, const StartPoint& start, const JobConfig& config,
                   Registry& registry) {
  if (config.checkpoint.enable && config.checkpoint.last_save_in_hf)
    check_exportable(run, config.model.name);
  if (!start.loads_weights()) return;
  const std::string name = shown_model(config);
  const bool is_hf = start.kind == Kind::hugging_face;
  const bool is_compared =
      start.kind == Kind::checkpoint ||
      (is_hf && check_hf_config(exchange_of(*run.model, name), start.folder, registry,
                                config.model_plugin.name, config.training.seq_len));
  if (!is_compared && run.mesh.rank() == 0)
    log::warn("'" + start.folder.string() + "' has no " +
              (is_hf ? "config.json" : "manifest.json") +
              ": settings that tensor shapes do not reveal, such as rotary positions and epsilon, "
              "are not verified");
  const std::string place = place_of(start);
  warn_of_initial_states(run, start, place);
  const std::vector<FoundWeight> found = weights_at(run, start, name);
  if (is_hf) check_quantised(found, start, config.checkpoint);
  const dist::Group& world = run.mesh.group("world");
  if (has_copies(found))
    run_on_all_or_fail(world, run.device->device(), [&] {
      if (world.rank() == 0) check_copies(found, start.index, place, name);
    });
  if (start.kind != Kind::checkpoint) return;
  const std::string differs =
      check_model_options(start.manifest.config, config, *run.model, registry, place);
  if (!differs.empty() && world.rank() == 0) log::warn(differs);
  if (world.rank() != 0) return;
  tell_changes(start, config, place);
  if (!start.loads_train_state) return;
  std::string changed;
  for (const std::string& line : loss_differences(start.manifest.config, config, registry))
    changed += "\n  " + line;
  if (!changed.empty())
    log::warn("the run continues with another loss than " + place + " was trained with:" + changed);
}

void load_state(Run& run, const StartPoint& start, const LaunchEnv& launch) {
  restore_generators(run, start, launch);
  if (start.loads_train_state) run.watchers.restore(read_watcher_states(start));
  if (!start.loads_weights()) return;
  std::vector<StateTensor> wanted = weights_of(*run.part);
  const std::set<std::string> initial = left_initial(run, start);
  std::erase_if(wanted, [&](const StateTensor& weight) { return initial.contains(weight.name); });
  if (start.loads_optimizer) {
    std::vector<StateTensor> states = states_of(*run.optimizer);
    follow_stored_numbers(states, start.index);
    check_states(states, run, start);
    wanted.insert(wanted.end(), states.begin(), states.end());
  }
  const dist::Group& world = run.mesh.group("world");
  const c10::Device device = run.device->device();
  const double begin = monotonic_seconds();
  const LoadStats stats =
      start.kind == Kind::hugging_face
          ? load_parts(start.index, weights_at(run, start, "this model"), wanted, world, device)
          : load_tensors(
                start.index, wanted, [](const std::string& name) { return name; }, world, device);
  const int64_t bytes = world.all_reduce(stats.bytes_read, dist::Reduce::sum, device);
  const int64_t sent = world.all_reduce(stats.bytes_received, dist::Reduce::sum, device);
  const double seconds = monotonic_seconds() - begin;
  if (launch.rank != 0) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "; read %.1f MB in %.3f s (%.2f GB/s), sent %.1f MB between ranks",
                static_cast<double>(bytes) / 1e6, seconds,
                static_cast<double>(bytes) / 1e9 / seconds, static_cast<double>(sent) / 1e6);
  log::info((start.loads_train_state
                 ? "resumed after step " + std::to_string(run.state.step) + " from "
                 : std::string("started with the weights of ")) +
            "'" + start.folder.string() + "'" + text);
  if (stats.num_converted > 0)
    log::warn(std::to_string(stats.num_converted) +
              " tensors were stored in another type than training.dtype and were converted");
}

}  // namespace titan::core
