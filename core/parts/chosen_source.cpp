#include "core/parts/chosen_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <titan/error.h>

#include "core/config/partial_resolve.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/partial_lookup.h"
#include "core/data/conversation_needs.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"
#include "core/data/tokenizer_hash.h"

namespace titan::core {
namespace {

bool decides(const KeyPath& path) {
  static const std::array<KeyPath, 5> kKeys = {{{"training", "dataset"},
                                                {"training", "dataset_path"},
                                                {"model", "hf_assets_path"},
                                                {"model", "tokenizer_path"},
                                                {"debug", "seed"}}};
  return path[0] == "dataset" || path[0] == "tokenizer" || path[0] == "plugins" ||
         std::find(kKeys.begin(), kKeys.end(), path) != kKeys.end();
}

JobSources sources_of(const DataRequest& request) {
  JobSources sources = read_sources(request.job);
  for (const TableHeader& table : sources.file.tables)
    TITAN_CHECK(table.path.size() < 2 || table.path[0] != "data" || table.path[1] != "sources",
                config, table.where.to_string(), ": ", request.command,
                " takes one data set, not a blend; name it in training.dataset and blend the "
                "results");
  keep_settings(sources.file, decides);
  return sources;
}

JobConfig config_of(const JobSources& sources, const Catalog& catalog, Registry& registry) {
  PartialLookup lookup(catalog, registry, {Dataset::kKind, Tokenizer::kKind});
  return resolve_part(sources, lookup);
}

uint64_t seed_of(const JobConfig& config) {
  return static_cast<uint64_t>(config.debug.seed.value_or(0));
}

}  // namespace

ChosenSource::ChosenSource(const DataRequest& request)
    : ChosenSource(sources_of(request), request.no_conversations) {}

ChosenSource::ChosenSource(const JobSources& sources, const std::string& no_conversations)
    : catalog_(plugin_catalog(sources)),
      registry_(catalog_),
      config_(config_of(sources, catalog_, registry_)),
      tokenizer_(with_places(config_, [this] { return open_tokenizer(config_, registry_); })),
      dataset_(with_places(config_, [this] {
        return open_dataset(config_.sources[0], config_, seed_of(config_), registry_);
      })) {
  with_places(config_, [&] {
    const std::string& name = config_.sources[0].dataset.name;
    require_tokenizer(*dataset_, *tokenizer_, name, config_);
    warn_of_bare_documents(*dataset_, *tokenizer_, name, config_.model.hf_assets_path);
    TITAN_CHECK(no_conversations.empty() || !needs_of(*dataset_, name).has_conversations, config,
                "data set '", name, "' holds conversations; ", no_conversations,
                ". Train on the data set itself: training.dataset = \"", name, "\"");
  });
}

std::string ChosenSource::description() const {
  const std::string path = config_.training.dataset_path.value_or("");
  return "data set '" + config_.sources[0].dataset.name + "'" +
         (path.empty() ? "" : " (" + path + ")") +
         (missing_tokenizer(*tokenizer_) ? ", which needs no tokenizer"
                                         : ", tokenizer '" + config_.tokenizer.name + "' (" +
                                               config_.model.hf_assets_path + ")");
}

Value ChosenSource::identity() const {
  return Value::map({{"kind of data set", config_.sources[0].dataset.name},
                     {"data set's options", config_.sources[0].dataset.options},
                     {"content of the data set", dataset_->fingerprint()},
                     {"seed", static_cast<int64_t>(seed_of(config_))},
                     {"tokenizer", behaviour_hash(*tokenizer_)}});
}

}  // namespace titan::core
