// Formats an estimate as tables and as a value. See estimate.h.
#include <cstdio>
#include <map>
#include <utility>

#include <titan/program/text_table.h>

#include "core/estimate/estimate.h"

namespace titan::core {
namespace {

struct UseName {
  MemoryUse use;
  const char* title;  // of a column
  const char* key;    // of a member
};
constexpr UseName kUses[] = {
    {MemoryUse::parameters, "parameters", "parameters"},
    {MemoryUse::gradients, "gradients", "gradients"},
    {MemoryUse::optimizer_states, "optimizer", "optimizer_states"},
    {MemoryUse::activations, "activations", "activations"},
    {MemoryUse::communication, "communication", "communication"},
    {MemoryUse::temporary, "temporary", "temporary"},
};
static_assert(std::size(kUses) == UseBytes::kNumUses);

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string gib(int64_t bytes) {
  return number("%.3f", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::string range(const std::string& first, const std::string& last) {
  return first == last ? first : first + " .. " + last;
}

std::string headline(const Estimate& estimate) {
  const Layout& l = estimate.config.layout;
  const TrainingSection& t = estimate.config.training;
  std::string text =
      "estimate of " + estimate.config.model.name + " " + estimate.config.model.flavor + " (" +
      std::to_string(estimate.num_parameters) + " parameters) on " +
      std::to_string(estimate.config.world_size) + " ranks: pp " + std::to_string(l.pipeline) +
      ", dp_replicate " + std::to_string(l.replicate) + ", dp_shard " + std::to_string(l.shard) +
      ", cp " + std::to_string(l.context) + ", tp " + std::to_string(l.tensor) + "\n";
  text += "a step is " + std::to_string(l.global_batch_size) + " sequences of " +
          std::to_string(t.seq_len) + " tokens, " + std::to_string(l.accumulation_rounds) + " x " +
          std::to_string(t.local_batch_size) + " of them on a rank; activation checkpointing: " +
          estimate.config.activation_checkpoint.mode + "\n";
  if (t.enable_cpu_offload)
    text +=
        "with cpu offload parameters, gradients and optimizer states are in host memory: subtract "
        "them for the device\n";
  return text;
}

/// The peak without expert balance, for layouts with expert parallelism.
std::string uneven_text(const Estimate& estimate) {
  const RankEstimate* most = nullptr;
  for (const RankEstimate& rank : estimate.ranks)
    if (rank.step.uneven_peak && (!most || rank.uneven_peak_bytes() > most->uneven_peak_bytes()))
      most = &rank;
  if (!most) return "";
  return "  with balanced experts; if all tokens of every layer went to the experts of one rank, "
         "the peak would be " +
         gib(*most->uneven_peak_bytes()) + " GiB (pp " + std::to_string(most->pipeline_rank) +
         ")\n";
}

std::string memory_text(const Estimate& estimate) {
  std::vector<TextRow> rows = {{"pp", "rank", "layers"}};
  for (const UseName& use : kUses) rows[0].push_back(use.title);
  const int64_t library_bytes = estimate.ranks.front().library_bytes;
  if (library_bytes > 0) rows[0].push_back("libraries");
  rows[0].insert(rows[0].end(), {"PEAK", "during"});
  for (const RankEstimate& rank : estimate.ranks) {
    const auto& layers = rank.step.layers;
    TextRow row = {std::to_string(rank.pipeline_rank), std::to_string(rank.rank),
                   rank.stages.size() > 1 ? std::to_string(rank.stages.size()) + " stages"
                                          : range(layers.front().name, layers.back().name)};
    for (const UseName& use : kUses) row.push_back(gib(rank.step.peak.bytes[use.use]));
    if (library_bytes > 0) row.push_back(gib(rank.library_bytes));
    const bool is_largest = estimate.ranks.size() > 1 && &rank == &estimate.largest();
    row.push_back(gib(rank.peak_bytes()) + (is_largest ? " *" : ""));
    row.push_back(rank.step.peak.place);
    rows.push_back(std::move(row));
  }
  return "memory of a rank at its highest moment, in GiB (coordinate 0 on every axis but pp: the "
         "largest shares)\n" +
         text_table(rows, "  ") +
         (estimate.ranks.size() > 1 ? "  * the largest of all ranks\n" : "") +
         (library_bytes > 0 ? "  libraries: cuBLAS's workspaces, for a GPU of compute capability "
                              "9.0 or 10.0 (H100, H200, B200)\n"
                            : "") +
         uneven_text(estimate);
}

std::string held_text(const Estimate& estimate) {
  std::vector<TextRow> rows = {{"pp", "stage", "layers", "parameters", "activations kept (GiB)"}};
  for (const RankEstimate& rank : estimate.ranks)
    for (const StageEstimate& stage : rank.stages)
      rows.push_back({std::to_string(rank.pipeline_rank), std::to_string(stage.index),
                      range(stage.first_layer, stage.last_layer), std::to_string(stage.parameters),
                      gib(stage.activation_bytes)});
  return "stages: parameters of a rank's shards, and what one microbatch's forward keeps for its "
         "backward\n" +
         text_table(rows, "  ");
}

std::string flops_text(const Estimate& estimate) {
  const double tokens = static_cast<double>(estimate.tokens_per_step);
  const Flops& flops = estimate.flops_per_token;
  std::vector<TextRow> rows = {
      {"convention", "FLOP per token", "FLOP per step, all ranks"},
      {"full_attention (torchtitan, PaLM)", number("%.6g", flops.full_attention),
       number("%.6g", flops.full_attention * tokens)},
      {"causal_half (Megatron, MaxText)", number("%.6g", flops.causal_half),
       number("%.6g", flops.causal_half * tokens)}};
  std::string text = "operations, forward and backward\n" + text_table(rows, "  ");
  rows = {{"pp", "FLOP of a rank's step (causal_half)", "recomputed in addition"}};
  for (const RankEstimate& rank : estimate.ranks)
    rows.push_back({std::to_string(rank.pipeline_rank), number("%.6g", rank.flops),
                    number("%.6g", rank.step.recomputed_flops)});
  return text + text_table(rows, "  ");
}

/// For each group and operation: the rank that sends most.
std::string traffic_text(const Estimate& estimate) {
  std::map<std::pair<std::string, std::string>, std::pair<int, dist::Traffic>> most;
  for (const RankEstimate& rank : estimate.ranks)
    for (const auto& [key, traffic] : rank.step.traffic) {
      const auto [place, is_new] = most.try_emplace(key, rank.pipeline_rank, traffic);
      if (!is_new && traffic.bytes > place->second.second.bytes)
        place->second = {rank.pipeline_rank, traffic};
    }
  if (most.empty()) return "";
  std::vector<TextRow> rows = {{"group", "operation", "calls", "bytes", "of pp"}};
  for (const auto& [key, entry] : most)
    rows.push_back({key.first, key.second, std::to_string(entry.second.calls),
                    std::to_string(entry.second.bytes), std::to_string(entry.first)});
  return "sent in a step by the rank that sends most\n" + text_table(rows, "  ");
}

std::string time_text(const PredictedTime& time) {
  return "PREDICTED step time, not measured: " + number("%.6g", time.all_hidden) +
         " s if communication hides behind computation, " + number("%.6g", time.nothing_hidden) +
         " s if nothing does\n"
         "  computation " +
         number("%.6g", time.compute_seconds) +
         " s = (FLOP of the rank's step, causal_half, + recomputed) / peak FLOP/s; idle " +
         number("%.2f", 100 * time.idle_share) +
         " % of the step by the schedule (F = I = W = 1, recomputation added to I)\n"
         "  communication " +
         number("%.6g", time.traffic_seconds) +
         " s = bytes that the rank sends / bandwidth, all groups alike, no latency\n"
         "  of the slowest pipeline rank; assumes that every operation runs at the given peak\n";
}

Value bytes_value(const UseBytes& bytes) {
  Value value = Value::map();
  for (const UseName& use : kUses) value[use.key] = bytes[use.use];
  return value;
}

Value rank_value(const RankEstimate& rank) {
  const SimulatedStep& step = rank.step;
  const std::optional<int64_t> uneven_peak = rank.uneven_peak_bytes();
  Value peak_by_use = bytes_value(step.peak.bytes);
  if (rank.library_bytes > 0) peak_by_use["libraries"] = rank.library_bytes;
  Value::List stages, traffic;
  for (const StageEstimate& stage : rank.stages)
    stages.push_back(Value::map({{"stage", int64_t{stage.index}},
                                 {"first_layer", stage.first_layer},
                                 {"last_layer", stage.last_layer},
                                 {"parameters", stage.parameters},
                                 {"activation_bytes", stage.activation_bytes}}));
  for (const auto& [key, sent] : step.traffic)
    traffic.push_back(Value::map({{"group", key.first},
                                  {"operation", key.second},
                                  {"calls", sent.calls},
                                  {"bytes", sent.bytes}}));
  return Value::map({{"pipeline_rank", int64_t{rank.pipeline_rank}},
                     {"rank", int64_t{rank.rank}},
                     {"stages", Value(std::move(stages))},
                     {"holds", Value::map({{"parameters", step.parameter_bytes},
                                           {"gradients", step.gradient_bytes},
                                           {"optimizer_states", step.optimizer_bytes}})},
                     {"peak_bytes", rank.peak_bytes()},
                     {"peak_by_use", std::move(peak_by_use)},
                     {"peak_place", step.peak.place},
                     {"uneven_peak_bytes", uneven_peak ? Value(*uneven_peak) : Value()},
                     {"flops", rank.flops},
                     {"recomputed_flops", step.recomputed_flops},
                     {"traffic", Value(std::move(traffic))}});
}

}  // namespace

std::string to_text(const Estimate& estimate) {
  return headline(estimate) + memory_text(estimate) + held_text(estimate) + flops_text(estimate) +
         traffic_text(estimate) + (estimate.time ? time_text(*estimate.time) : "");
}

Value to_value(const Estimate& estimate) {
  const double tokens = static_cast<double>(estimate.tokens_per_step);
  const Flops& flops = estimate.flops_per_token;
  Value::List ranks;
  for (const RankEstimate& rank : estimate.ranks) ranks.push_back(rank_value(rank));
  Value value = Value::map(
      {{"model", estimate.config.model.name + " " + estimate.config.model.flavor},
       {"num_parameters", estimate.num_parameters},
       {"world_size", int64_t{estimate.config.world_size}},
       {"tokens_per_step", estimate.tokens_per_step},
       {"flops_per_token",
        Value::map({{"full_attention", flops.full_attention}, {"causal_half", flops.causal_half}})},
       {"flops_per_step", Value::map({{"full_attention", flops.full_attention * tokens},
                                      {"causal_half", flops.causal_half * tokens}})},
       {"largest_pipeline_rank", int64_t{estimate.largest().pipeline_rank}},
       {"ranks", Value(std::move(ranks))}});
  if (estimate.time)
    value["predicted_time"] =
        Value::map({{"compute_seconds", estimate.time->compute_seconds},
                    {"idle_share", estimate.time->idle_share},
                    {"traffic_seconds", estimate.time->traffic_seconds},
                    {"all_hidden_seconds", estimate.time->all_hidden},
                    {"nothing_hidden_seconds", estimate.time->nothing_hidden}});
  return value;
}

}  // namespace titan::core
