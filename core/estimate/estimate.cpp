#include "core/estimate/estimate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <titan/log.h>
#include <titan/nn/head.h>
#include <titan/pipelines/analysis.h>

#include "core/estimate/gpu_memory.h"
#include "core/estimate/memory_limit.h"

namespace titan::core {
namespace {

/// Distributes the model's FLOPs over its layers. A block has those of its own matrices and an
/// equal share of the attention; the last layer has the rest, that of a head whose matrix may be
/// tied.
class LayerFlops {
 public:
  LayerFlops(const Model& model, ModelPart& part, int64_t seq_len) {
    const double once = model.flops_per_token(seq_len).causal_half;
    const double twice = model.flops_per_token(2 * seq_len).causal_half;
    const double attention = twice - once;  // proportional to the length, unlike the rest
    double rest = once - attention;
    for (Layer& layer : part.layers()) num_blocks_ += layer.is_block ? 1 : 0;
    for (Layer& layer : part.layers()) {
      if (!layer.is_block) continue;
      double elements = 0;
      layer.module->visit_parameters([&](const nn::Parameter& parameter) {
        if (parameter.global_shape().size() >= 2 && !parameter.is_state())
          elements += static_cast<double>(parameter.global_num_elements());
      });
      of_[layer.name] = 6 * elements + attention / num_blocks_;
      rest -= 6 * elements;
    }
    if (num_blocks_ == 0) rest = once;
    of_[part.layers().back().name] += std::max(0.0, rest);
  }

  /// FLOPs per token.
  double of(const std::string& layer) const {
    const auto found = of_.find(layer);
    return found == of_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, double> of_;
  int num_blocks_ = 0;
};

std::set<std::string> parameter_names(const ModelPart& part) {
  std::set<std::string> names;
  for (const nn::Parameter* parameter : part.parameters()) names.insert(parameter->name());
  return names;
}

/// The FLOPs per token that converters add to the layers in `part`; `known`: the parameters of the
/// model itself. A frozen matrix gets no gradient, which saves a third; an added matrix counts like
/// those of the model.
double converted_flops(ModelPart& part, const std::set<std::string>& known) {
  double flops = 0;
  for (Layer& layer : part.layers()) {
    const bool is_head = dynamic_cast<const nn::OutputHead*>(layer.module.get());
    if (!layer.is_block && !is_head) continue;  // an embedding does no matrix product
    layer.module->visit_parameters([&](const nn::Parameter& parameter) {
      if (parameter.global_shape().size() < 2 || parameter.is_state()) return;
      const auto elements = static_cast<double>(parameter.global_num_elements());
      if (!known.contains(parameter.name())) flops += 6 * elements;
      if (parameter.is_frozen()) flops -= 2 * elements;
    });
  }
  return flops;
}

std::vector<StageEstimate> stages_of(const std::vector<WatchedLayer>& layers) {
  std::vector<StageEstimate> stages;
  for (const WatchedLayer& layer : layers) {
    if (stages.empty() || stages.back().index != layer.stage)
      stages.push_back({.index = layer.stage, .first_layer = layer.name, .last_layer = layer.name});
    stages.back().last_layer = layer.name;
    stages.back().parameters += layer.parameters;
    stages.back().activation_bytes += layer.kept_bytes;
  }
  return stages;
}

int64_t sent_bytes(const SimulatedStep& step) {
  int64_t bytes = 0;
  for (const auto& [key, traffic] : step.traffic) bytes += traffic.bytes;
  return bytes;
}

/// Share of the step during which each pipeline rank idles.
std::vector<double> idle_shares(const Estimate& estimate) {
  std::vector<double> idle(estimate.ranks.size(), 0);
  if (!estimate.config.pipeline_plan) return idle;
  double flops = 0, recomputed = 0;
  for (const RankEstimate& rank : estimate.ranks) {
    flops += rank.flops;
    recomputed += rank.step.recomputed_flops;
  }
  const double again = flops > 0 ? 3 * recomputed / flops : 0;  // in units of a forward
  const PipelineAnalysis analysis = analyze(
      *estimate.config.pipeline_plan, {.forward = 1, .input_grad = 1 + again, .weight_grad = 1});
  for (size_t i = 0; i < idle.size(); ++i) idle[i] = analysis.ranks[i].bubble;
  return idle;
}

}  // namespace

const RankEstimate& Estimate::largest() const {
  return *std::max_element(
      ranks.begin(), ranks.end(),
      [](const RankEstimate& a, const RankEstimate& b) { return a.peak_bytes() < b.peak_bytes(); });
}

Estimate estimate(const JobConfig& config, Registry& registry,
                  const std::optional<MachineSpeed>& speed) {
  Estimate result;
  result.config = config;
  const dist::Grid& grid = config.layout.grid;
  const std::vector<int> stages = grid.ranks(0, "pp");
  const int64_t seq_len = config.training.seq_len;
  result.tokens_per_step = config.layout.global_batch_size * seq_len;

  const MetaModel whole = build_meta_model(config, registry);
  result.num_parameters = whole.part->num_parameters();
  result.flops_per_token = whole.model->flops_per_token(seq_len);
  const LayerFlops flops(*whole.model, *whole.part, seq_len);
  const std::set<std::string> known = parameter_names(*whole.part);
  const double own_tokens = static_cast<double>(result.tokens_per_step) /
                            static_cast<double>(grid.world_size() / grid.size("pp"));

  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(stages.size()); ++pipeline_rank) {
    RankEstimate rank{.rank = stages[static_cast<size_t>(pipeline_rank)],
                      .pipeline_rank = pipeline_rank,
                      .library_bytes = library_bytes(config)};
    JobConfig own = config;
    fit_memory_limit(own, registry, rank.rank);
    std::optional<log::Quiet> quiet;  // the first rank has logged it
    if (pipeline_rank > 0) quiet.emplace();
    const std::unique_ptr<Run> run = assemble_simulated(own, registry, rank.rank);
    rank.step = simulate_step(*run, own, {.finds_uneven_peak = true});
    rank.stages = stages_of(rank.step.layers);
    double per_token = converted_flops(*run->part, known);
    for (const WatchedLayer& layer : rank.step.layers) per_token += flops.of(layer.name);
    rank.flops = own_tokens * per_token;
    result.ranks.push_back(std::move(rank));
  }
  if (speed) result.time = predict_time(result, *speed);
  return result;
}

PredictedTime predict_time(const Estimate& estimate, const MachineSpeed& speed) {
  const std::vector<double> idle = idle_shares(estimate);
  PredictedTime slowest;
  for (size_t i = 0; i < estimate.ranks.size(); ++i) {
    const RankEstimate& rank = estimate.ranks[i];
    PredictedTime time;
    time.compute_seconds = (rank.flops + rank.step.recomputed_flops) / speed.flops;
    time.idle_share = idle[i];
    time.traffic_seconds = static_cast<double>(sent_bytes(rank.step)) / speed.bandwidth;
    const double with_idling = time.compute_seconds / (1 - time.idle_share);
    time.all_hidden = std::max(with_idling, time.traffic_seconds);
    time.nothing_hidden = with_idling + time.traffic_seconds;
    if (time.nothing_hidden > slowest.nothing_hidden) slowest = time;
  }
  return slowest;
}

}  // namespace titan::core
