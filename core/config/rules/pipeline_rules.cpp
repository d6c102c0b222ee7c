// Computes the number of pipeline stages and checks whether the schedule can run them with the
// given microbatches.
#include <limits>
#include <optional>

#include <titan/error.h>

#include "core/config/rules/cross_rules.h"
#include "core/config/selection/default_plugins.h"
#include "core/pipeline/plan.h"

namespace titan::core {
namespace {

constexpr const char* kScheduleKey = "parallelism.pipeline_parallel_schedule";
constexpr const char* kCsvKey = "parallelism.pipeline_parallel_schedule_csv";
constexpr const char* kSizeKey = "parallelism.pipeline_parallel_microbatch_size";

/// Number of stages; absent when it does not divide (reported) or cannot be known.
std::optional<int64_t> count_stages(const RuleContext& rules, const PipelineSchedule& schedule) {
  const ParallelismSection& p = rules.config.parallelism;
  const int64_t ranks = p.pipeline_parallel_degree;
  const auto divided = [&](int64_t stages, const char* key) -> std::optional<int64_t> {
    if (stages > 0 && stages % ranks == 0) return stages;
    rules.error(key, "the model has " + std::to_string(stages) +
                         " stages, which is not a multiple of pipeline_parallel_degree = " +
                         std::to_string(ranks));
    return std::nullopt;
  };
  if (p.module_fqns_per_model_part)
    return divided(static_cast<int64_t>(p.module_fqns_per_model_part->size()),
                   "parallelism.module_fqns_per_model_part");
  if (!p.pipeline_parallel_layers_per_stage)
    return schedule.default_num_stages(static_cast<int>(ranks));
  const Value* layers = rules.config.model_plugin.options.find("n_layers");
  if (!layers || !layers->is_integer()) return std::nullopt;
  const int64_t weight = layers->as_integer() + p.pipeline_parallel_first_stage_less_layers +
                         p.pipeline_parallel_last_stage_less_layers;
  const int64_t per_stage = *p.pipeline_parallel_layers_per_stage;
  return divided((weight + per_stage - 1) / per_stage,
                 "parallelism.pipeline_parallel_layers_per_stage");
}

/// Microbatches of `batch` sequences; absent when they do not divide, which is reported.
std::optional<int64_t> count_microbatches(const RuleContext& rules, int64_t batch,
                                          const std::string& batch_key) {
  const int64_t size = rules.config.parallelism.pipeline_parallel_microbatch_size;
  if (batch % size == 0) return batch / size;
  rules.error(kSizeKey, "pipeline_parallel_microbatch_size = " + std::to_string(size) +
                            " does not divide " + batch_key + " = " + std::to_string(batch));
  return std::nullopt;
}

}  // namespace

std::shared_ptr<const PipelinePlan> plan_pipeline(const RuleContext& rules,
                                                  const PipelineSchedule& schedule) {
  const JobConfig& config = rules.config;
  if (!rules.are_sound({kScheduleKey, kCsvKey, kSizeKey, "training.local_batch_size"}))
    return nullptr;
  const auto microbatches =
      count_microbatches(rules, config.training.local_batch_size, "training.local_batch_size");
  const auto stages = count_stages(rules, schedule);
  if (config.validation.enable && rules.are_sound({"validation.local_batch_size"}))
    count_microbatches(rules, config.validation.local_batch_size, "validation.local_batch_size");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (!microbatches || !stages || *microbatches > kMost || *stages > kMost) return nullptr;

  const PipelineShape shape{
      .num_ranks = static_cast<int>(config.parallelism.pipeline_parallel_degree),
      .num_stages = static_cast<int>(*stages),
      .num_microbatches = static_cast<int>(*microbatches)};
  const bool is_scarce = shape.num_microbatches < shape.num_stages;
  const bool is_file = config.pipeline_schedule.name == default_plugins::kScheduleFile;
  const char* const key = is_file ? kCsvKey : kScheduleKey;
  try {
    auto plan = std::make_shared<const PipelinePlan>(
        make_plan(schedule, config.pipeline_schedule.name, shape));
    if (is_scarce)
      rules.diagnostics.warning(rules.given.place(key),
                                "ranks will idle: " + std::to_string(shape.num_microbatches) +
                                    " microbatches for " + std::to_string(shape.num_stages) +
                                    " stages");
    return plan;
  } catch (const Error& e) {
    rules.error(key, e.message(),
                is_scarce
                    ? "raise training.local_batch_size or lower pipeline_parallel_microbatch_size"
                    : "");
    return nullptr;
  }
}

}  // namespace titan::core
