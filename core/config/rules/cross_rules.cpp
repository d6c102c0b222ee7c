#include "core/config/rules/cross_rules.h"

#include <algorithm>
#include <filesystem>

namespace titan::core {
namespace {

/// Context parallelism splits sequences into 2 x context parts (the balanced order needs pairs),
/// and tensor parallelism splits each of these.
void check_seq_len(const RuleContext& rules, const std::string& key, int64_t seq_len,
                   const Layout& layout) {
  if (!rules.are_sound(
          {key, "parallelism.tensor_parallel_degree", "parallelism.context_parallel_degree"}))
    return;
  if (layout.tensor > (1 << 20) || layout.context > (1 << 20)) return;  // reported as degrees
  const int64_t unit = layout.tensor * 2 * layout.context;
  if (seq_len % unit == 0) return;
  const int64_t below = seq_len / unit * unit;
  rules.error(key,
              key + " = " + std::to_string(seq_len) +
                  " is not divisible by tensor_parallel_degree x 2 x context_parallel_degree = " +
                  std::to_string(layout.tensor) + " x 2 x " + std::to_string(layout.context) +
                  " = " + std::to_string(unit),
              "nearest: " + (below > 0 ? std::to_string(below) + " or " : "") +
                  std::to_string(below + unit));
}

void check_experts(const RuleContext& rules, const Layout& layout) {
  const ParallelismSection& p = rules.config.parallelism;
  const char* const etp_key = "parallelism.expert_tensor_parallel_degree";
  const char* const ep_key = "parallelism.expert_parallel_degree";
  if (!rules.are_sound({etp_key, ep_key})) return;
  const int64_t etp = p.expert_tensor_parallel_degree;
  if (etp != 1 && etp != layout.tensor) {
    rules.error(etp_key, "expert_tensor_parallel_degree must be 1 or tensor_parallel_degree = " +
                             std::to_string(layout.tensor) + ", got " + std::to_string(etp));
    return;
  }
  const int64_t ranks = layout.shard * layout.context * layout.tensor;
  if (p.expert_parallel_degree > ranks || ranks % (etp * p.expert_parallel_degree) != 0)
    rules.error(
        ep_key,
        "experts do not fit: data_parallel_shard_degree x context_parallel_degree x "
        "tensor_parallel_degree = " +
            std::to_string(ranks) +
            " is not a multiple of expert_parallel_degree x expert_tensor_parallel_degree = " +
            std::to_string(p.expert_parallel_degree) + " x " + std::to_string(etp));
}

void check_validation(const RuleContext& rules, const Layout& layout) {
  const ValidationSection& v = rules.config.validation;
  if (rules.are_sound({"validation.steps"}) && v.steps <= 0 && v.steps != -1)
    rules.error("validation.steps",
                "validation.steps must be > 0 or -1, got " + std::to_string(v.steps),
                "-1: the whole set");
  if (v.enable) check_seq_len(rules, "validation.seq_len", v.seq_len, layout);
  if (!v.tasks.empty() && rules.are_sound({"validation.tasks"}) && layout.context > 1)
    rules.error("validation.tasks",
                "tasks cannot be scored under context parallelism, which computes attention itself",
                "score checkpoints with titan evaluate");
}

void check_data(const RuleContext& rules) {
  const auto is_of_source = [](const auto& given) {
    return given.first.size() > 2 && given.first[0] == "data" && given.first[1] == "sources";
  };
  const auto& all = rules.given.all();
  if (std::none_of(all.begin(), all.end(), is_of_source)) return;
  for (const char* key : {"training.dataset", "training.dataset_path"})
    if (rules.given.find(key))
      rules.error(key, std::string(key) + " cannot be combined with [data.sources]",
                  "make it one of the sources or remove it");
}

void check_checkpoint(const RuleContext& rules) {
  const CheckpointSection& c = rules.config.checkpoint;
  if (rules.are_sound({"checkpoint.keep_latest_k"}) && c.keep_latest_k == 1)
    rules.error("checkpoint.keep_latest_k",
                "checkpoint.keep_latest_k = 1 would remove the only complete checkpoint while the "
                "next is written",
                "0 keeps all; else at least 2");
  const auto needs = [&](bool has, const char* key, bool needed, const char* other) {
    if (has && !needed && rules.are_sound({key, other}))
      rules.error(key, std::string(key) + " needs " + other + " = true");
  };
  needs(c.create_seed_checkpoint, "checkpoint.create_seed_checkpoint", c.enable,
        "checkpoint.enable");
  if (!c.enable) {
    // the run would not begin with the weights that these keys name
    const auto is_read = [&](bool is_asked, const char* key) {
      if (is_asked && rules.are_sound({key, "checkpoint.enable"}))
        rules.error(key, std::string(key) + " would not be read: checkpoint.enable = false",
                    "set checkpoint.enable = true, or leave it out");
    };
    is_read(c.initial_load_path.has_value(), "checkpoint.initial_load_path");
    is_read(c.initial_load_in_hf, "checkpoint.initial_load_in_hf");
    is_read(c.load_step >= 0, "checkpoint.load_step");
    return;
  }
  needs(c.initial_load_in_hf, "checkpoint.initial_load_in_hf", c.initial_load_model_only,
        "checkpoint.initial_load_model_only");
  needs(c.initial_load_in_hf_quantized, "checkpoint.initial_load_in_hf_quantized",
        c.initial_load_in_hf, "checkpoint.initial_load_in_hf");
  needs(c.last_save_in_hf, "checkpoint.last_save_in_hf", c.last_save_model_only,
        "checkpoint.last_save_model_only");
  if (c.create_seed_checkpoint && rules.config.world_size != 1)
    rules.error("checkpoint.create_seed_checkpoint",
                "a seed checkpoint is written by one rank, not by " +
                    std::to_string(rules.config.world_size));
}

void check_early_step(const RuleContext& rules, const Layout& layout) {
  const std::string key = "optimizer.early_step_in_backward";
  if (!rules.config.optimizer_section.early_step_in_backward || !rules.are_sound({key})) return;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    rules.error(key, key + " = true updates each parameter as soon as its gradient is ready" + why,
                hint);
  };
  if (layout.pipeline > 1)
    refuse(", but a pipeline completes gradients at the end of the step",
           "set pipeline_parallel_degree = 1");
  const MetricsSection& metrics = rules.config.metrics;
  if (metrics.norms != NormsOf::none || !metrics.histograms.empty())
    refuse(", so metrics.norms and metrics.histograms have no gradients to read",
           "leave out metrics.norms and metrics.histograms");
  if (rules.config.parallelism.expert_parallel_degree > 1)
    refuse(", which is not supported with experts", "set expert_parallel_degree = 1");
  if (rules.config.training.max_norm > 0 && rules.are_sound({"training.max_norm"}))
    refuse(", so the gradient norm is never known and cannot be clipped to training.max_norm = " +
               to_json(Value(rules.config.training.max_norm)),
           "set training.max_norm = 0");
  if (rules.config.training.mixed_precision_param == Dtype::float16)
    refuse(", before float16 overflows are detected", "compute in bfloat16");
}

void check_paths(const RuleContext& rules) {
  std::error_code ignored;
  const CheckpointSection& checkpoint = rules.config.checkpoint;
  const char* const start_key = "checkpoint.initial_load_path";
  const bool may_resume = std::filesystem::exists(  // and then reads no initial weights
      std::filesystem::path(rules.config.job.dump_folder) / checkpoint.folder, ignored);
  if (rules.looks_for_files && checkpoint.enable && checkpoint.initial_load_path && !may_resume &&
      rules.are_sound({start_key, "checkpoint.enable"}) &&
      !std::filesystem::is_directory(*checkpoint.initial_load_path, ignored))
    rules.error(start_key, titan::detail::concat(start_key, ": there is no folder '",
                                                 *checkpoint.initial_load_path, "'"));
  const auto& csv = rules.config.parallelism.pipeline_parallel_schedule_csv;
  const bool is_read = rules.config.parallelism.pipeline_parallel_degree >
                       1;  // and then the schedule reports a missing file
  if (csv && !csv->empty() && !is_read && !std::filesystem::is_regular_file(*csv, ignored))
    rules.error("parallelism.pipeline_parallel_schedule_csv",
                "parallelism.pipeline_parallel_schedule_csv: there is no file '" + *csv + "'");
}

void check_reference(const RuleContext& rules) {
  const char* const key = "reference.checkpoint";
  const auto& folder = rules.config.reference.checkpoint;
  if (!folder || !rules.are_sound({key})) return;
  if (!rules.config.loss_section.name && rules.are_sound({"loss.name"}))
    rules.error(key,
                titan::detail::concat(key,
                                      " has no effect without loss.name: the model's own cross "
                                      "entropy uses no reference model"),
                "name a loss that does, or remove it");
  std::error_code ignored;
  if (rules.looks_for_files && !std::filesystem::is_directory(*folder, ignored))
    rules.error(key, titan::detail::concat(key, ": there is no folder '", *folder, "'"));
}

void warn_without_effect(const RuleContext& rules) {
  const auto warn = [&](const std::string& value, const char* key) {
    if (!value.empty())
      rules.diagnostics.warning(rules.given.place(key), std::string(key) + " has no effect here",
                                "plugins are named in [plugins] paths");
  };
  warn(rules.config.job.custom_config_module, "job.custom_config_module");
  warn(rules.config.experimental.custom_import, "experimental.custom_import");
  warn(rules.config.experimental.custom_args_module, "experimental.custom_args_module");
}

}  // namespace

void check_layout(const RuleContext& context, const Layout& layout) {
  check_seq_len(context, "training.seq_len", context.config.training.seq_len, layout);
  check_experts(context, layout);
  check_validation(context, layout);
}

void check_rules(const RuleContext& context, const Layout& layout) {
  check_layout(context, layout);
  check_data(context);
  check_checkpoint(context);
  check_early_step(context, layout);
  check_paths(context);
  check_reference(context);
  warn_without_effect(context);
}

}  // namespace titan::core
