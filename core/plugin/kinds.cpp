#include "core/plugin/kinds.h"

#include <algorithm>

namespace titan::core {
namespace {

using Section = PluginKind::Section;

constexpr PluginKind kKindTable[] = {{"model", Section::kind},
                                     {"flavor", Section::none},
                                     {"converter", Section::name},
                                     {"parallelism", Section::name_also},
                                     {"pipeline_schedule", Section::name_also},
                                     {"activation_checkpoint", Section::kind},
                                     {"compile_backend", Section::name},
                                     {"optimizer", Section::kind},
                                     {"lr_scheduler", Section::kind},
                                     {"loss", Section::kind},
                                     {"dataset", Section::name},
                                     {"tokenizer", Section::kind},
                                     {"chat_template", Section::kind},
                                     {"logger", Section::name},
                                     {"watcher", Section::name},
                                     {"device", Section::kind},
                                     {"command", Section::none}};

}  // namespace

std::span<const PluginKind> kind_table() {
  return kKindTable;
}

const PluginKind* find_kind(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKindTable), std::end(kKindTable),
                                   [&](const PluginKind& kind) { return kind.name == name; });
  return found == std::end(kKindTable) ? nullptr : found;
}

bool has_named_sections(std::string_view name) {
  const PluginKind* kind = find_kind(name);
  return kind && (kind->section == Section::name || kind->section == Section::name_also);
}

}  // namespace titan::core
