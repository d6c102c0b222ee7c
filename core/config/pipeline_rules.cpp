// How many stages a pipeline has, and whether its schedule can run them with the microbatches there
// are.
#include <algorithm>
#include <iterator>
#include <optional>

#include "core/config/cross_rules.h"

namespace titan::core {
namespace {

constexpr const char* kScheduleKey = "parallelism.pipeline_parallel_schedule";

struct ScheduleShape {
  std::string_view name;
  bool one_stage_per_rank;
  bool is_v;  ///< exactly two stages per rank
};
constexpr ScheduleShape kShapes[] = {
    {"GPipe", true, false},
    {"1F1B", true, false},
    {"PipelineScheduleSingle", true, false},
    {"Interleaved1F1B", false, false},
    {"LoopedBFS", false, false},
    {"InterleavedZeroBubble", false, false},
    {"ZBVZeroBubble", false, true},
    {"DualPipeV", false, true},
    {"PipelineScheduleMulti", false, false},
};

/// Number of stages; absent when it does not divide (reported) or cannot be known.
std::optional<int64_t> count_stages(const RuleContext& rules, const ScheduleShape& shape) {
  const ParallelismSection& p = rules.config.parallelism;
  const int64_t ranks = p.pipeline_parallel_degree;
  const auto divided = [&](int64_t stages, const char* key) -> std::optional<int64_t> {
    if (stages > 0 && stages % ranks == 0) return stages;
    rules.error(key, "the model falls into " + std::to_string(stages) +
                         " stages, which is not a multiple of pipeline_parallel_degree = " +
                         std::to_string(ranks));
    return std::nullopt;
  };
  if (p.module_fqns_per_model_part)
    return divided(static_cast<int64_t>(p.module_fqns_per_model_part->size()),
                   "parallelism.module_fqns_per_model_part");
  if (!p.pipeline_parallel_layers_per_stage) return shape.one_stage_per_rank ? ranks : 2 * ranks;
  const Value* layers = rules.config.model_plugin.options.find("n_layers");
  if (!layers || !layers->is_integer()) return std::nullopt;
  const int64_t weight = layers->as_integer() + p.pipeline_parallel_first_stage_less_layers +
                         p.pipeline_parallel_last_stage_less_layers;
  const int64_t per_stage = *p.pipeline_parallel_layers_per_stage;
  return divided((weight + per_stage - 1) / per_stage,
                 "parallelism.pipeline_parallel_layers_per_stage");
}

void check_stages(const RuleContext& rules, const ScheduleShape& shape, int64_t stages) {
  const int64_t per_rank = stages / rules.config.parallelism.pipeline_parallel_degree;
  const std::string found = ", but there are " + std::to_string(per_rank);
  const std::string schedule = "schedule '" + std::string(shape.name) + "' needs ";
  if (shape.one_stage_per_rank && per_rank != 1)
    rules.error(kScheduleKey, schedule + "exactly 1 stage per rank" + found);
  else if (shape.is_v && per_rank != 2)
    rules.error(kScheduleKey, schedule + "exactly 2 stages per rank" + found);
  else if (!shape.one_stage_per_rank && per_rank < 2)
    rules.error(kScheduleKey, schedule + "at least 2 stages per rank" + found);
}

void check_microbatches(const RuleContext& rules, const ScheduleShape& shape, int64_t stages,
                        int64_t microbatches) {
  const int64_t ranks = rules.config.parallelism.pipeline_parallel_degree;
  const std::string counts =
      std::to_string(microbatches) + " microbatches for " + std::to_string(stages) + " stages";
  if (microbatches < stages) {
    if (shape.name == "1F1B" || shape.name == "DualPipeV")
      rules.error(kScheduleKey,
                  "schedule '" + std::string(shape.name) +
                      "' needs as many microbatches as stages, but there are " + counts,
                  "raise training.local_batch_size or lower pipeline_parallel_microbatch_size");
    else
      rules.diagnostics.warning(rules.given.place(kScheduleKey), "ranks will idle: " + counts);
  }
  if (shape.name == "Interleaved1F1B" || shape.name == "InterleavedZeroBubble") {
    const int64_t rounds = std::max<int64_t>(1, microbatches / ranks);
    if (microbatches % rounds != 0)
      rules.error(kScheduleKey, "schedule '" + std::string(shape.name) + "' runs in " +
                                    std::to_string(rounds) + " rounds, which do not divide " +
                                    std::to_string(microbatches) + " microbatches");
  }
}

}  // namespace

void check_pipeline_rules(const RuleContext& rules) {
  const ParallelismSection& p = rules.config.parallelism;
  const int64_t batch = rules.config.training.local_batch_size;
  const char* const size_key = "parallelism.pipeline_parallel_microbatch_size";
  if (!rules.are_sound({kScheduleKey, size_key, "training.local_batch_size"})) return;
  const int64_t size = p.pipeline_parallel_microbatch_size;
  const bool divides = batch % size == 0;
  if (!divides)
    rules.error(size_key,
                "pipeline_parallel_microbatch_size = " + std::to_string(size) +
                    " does not divide training.local_batch_size = " + std::to_string(batch));
  if (p.pipeline_parallel_schedule_csv && !p.pipeline_parallel_schedule_csv->empty()) return;

  const auto shape = std::find_if(
      std::begin(kShapes), std::end(kShapes),
      [&](const ScheduleShape& known) { return known.name == p.pipeline_parallel_schedule; });
  if (shape == std::end(kShapes)) return;
  if (const auto stages = count_stages(rules, *shape)) {
    check_stages(rules, *shape, *stages);
    if (divides) check_microbatches(rules, *shape, *stages, batch / size);
  }
  if (shape->name == "DualPipeV" && p.expert_parallel_degree > 1 &&
      p.pipeline_parallel_expert_parallel_overlap &&
      rules.config.activation_checkpoint.mode != RecomputeMode::none)
    rules.error(
        "activation_checkpoint.mode",
        "DualPipeV overlaps expert communication only with activation_checkpoint.mode = \"none\"",
        "or set pipeline_parallel_expert_parallel_overlap = false");
}

}  // namespace titan::core
