#include "core/train/assembly/changed_settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include <titan/program/quantity_text.h>

#include "core/runtime/build_info.h"

namespace titan::core {
namespace {

constexpr std::array<std::string_view, 9> kTraining = {
    "training.",  "optimizer.",       "lr_scheduler.",       "data.", "dataset.", "tokenizer.",
    "converter.", "model.converters", "model.hf_assets_path"};
/// Settings of these sections on which a step's result does not depend.
constexpr std::array<std::string_view, 5> kWithoutEffect = {
    "training.dataloader.", "training.gc_", "training.enable_cpu_offload", "data.timeout",
    "optimizer.implementation"};

template <class Prefixes>
bool begins_with_one(const std::string& key, const Prefixes& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

/// Collects the settings that can change a result, by dotted key.
void collect(const Value& value, const std::string& key, std::map<std::string, Value>& settings) {
  if (value.is_map()) {
    for (const auto& [name, member] : value.as_map())
      collect(member, key.empty() ? name : key + "." + name, settings);
    return;
  }
  if (begins_with_one(key, kTraining) && !begins_with_one(key, kWithoutEffect))
    settings[key] = value;
}

bool is_equal(const Value& a, const Value& b) {
  return a.is_number() && b.is_number() ? a.as_number() == b.as_number() : a == b;
}

std::string text_of(const std::map<std::string, Value>& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "not set" : to_json(found->second);
}

/// Of the run that saved it; 0 if its configuration does not determine it.
int64_t tokens_per_step(const CheckpointManifest& saved,
                        const std::map<std::string, Value>& settings) {
  const auto number = [&](const char* key) {
    const auto found = settings.find(key);
    return found != settings.end() && found->second.is_integer() ? found->second.as_integer() : 0;
  };
  int64_t rows = number("training.global_batch_size");
  if (rows < 0) {
    rows = number("training.local_batch_size");
    for (const dist::Grid::Axis& axis : saved.layout.axes)
      if (axis.name == "dp_replicate" || axis.name == "dp_shard") rows *= axis.size;
  }
  return rows * number("training.seq_len");
}

}  // namespace

std::vector<std::string> changed_settings(const CheckpointManifest& saved,
                                          const JobConfig& config) {
  std::map<std::string, Value> there, here;
  collect(saved.config, "", there);
  collect(config.resolved, "", here);
  const bool knows_all = saved.program == build_summary();
  std::set<std::string> keys;
  for (const auto* settings : {&there, &here})
    for (const auto& [key, value] : *settings) keys.insert(key);
  std::vector<std::string> changed;
  for (const std::string& key : keys) {
    const auto was = there.find(key), is = here.find(key);
    if (was == there.end() && !knows_all) continue;
    if (was != there.end() && is != here.end() && is_equal(was->second, is->second)) continue;
    changed.push_back(key + " = " + text_of(here, key) + " (was " + text_of(there, key) + ")");
  }
  const int64_t old_tokens = tokens_per_step(saved, there);
  const int64_t tokens = config.layout.global_batch_size * config.training.seq_len;
  if (old_tokens > 0 && old_tokens != tokens)
    changed.push_back("tokens per step = " + with_commas(tokens) + " (was " +
                      with_commas(old_tokens) + ")");
  return changed;
}

}  // namespace titan::core
