#include "core/train/assembly/run_identity.h"

#include <fstream>
#include <sstream>

#include <titan/files/hash.h>
#include <titan/pipelines/table_csv.h>

#include "core/runtime/build_info.h"
#include "core/train/step/observations.h"

namespace titan::core {
namespace {

void flatten(const std::string& prefix, const Value& value, RunIdentity& identity) {
  if (!value.is_map()) {
    identity.emplace_back(prefix, to_json(value));
    return;
  }
  for (const auto& [name, member] : value.as_map())
    flatten(prefix.empty() ? name : prefix + "." + name, member, identity);
}

std::string hash_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return hash64_hex(std::move(content).str());
}

}  // namespace

RunIdentity run_identity(const JobConfig& config, Registry& registry) {
  RunIdentity identity = {{"program", build_summary()}};
  std::vector<Selection> selections = {config.model_plugin, config.optimizer, config.lr_scheduler,
                                       config.tokenizer, config.device};
  for (const DataSource& source : config.sources) selections.push_back(source.dataset);
  if (config.validation_source) selections.push_back(config.validation_source->dataset);
  if (config.pipeline_plan) {
    selections.push_back(config.pipeline_schedule);
    // the table may come from a file of which every node has its own copy
    identity.emplace_back("pipeline table", hash64_hex(to_csv(config.pipeline_plan->actions)));
  }
  selections.insert(selections.end(), config.transforms.begin(), config.transforms.end());
  selections.insert(selections.end(), config.watchers.begin(), config.watchers.end());
  if (!config.loss.name.empty()) selections.push_back(config.loss);
  for (const Selection& logger : config.loggers)  // others exist only on the ranks that log
    if (observes_tensors(registry, logger)) selections.push_back(logger);
  for (const Selection& selection : selections) {
    const Origin& origin = registry.origin(registry.component(selection.kind, selection.name));
    const std::string hash = origin.file == "built in" ? origin.file : hash_of_file(origin.file);
    identity.emplace_back("plugin of " + selection.kind + " '" + selection.name + "'",
                          origin.plugin + " " + origin.version + " (" + hash + ")");
  }
  flatten("", config.resolved, identity);
  return identity;
}

}  // namespace titan::core
