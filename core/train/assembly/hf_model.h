// Finds the installed model that a Hugging Face folder holds. Used where weights are loaded without
// a configured model.
#pragma once

#include <filesystem>
#include <string>

#include <titan/value.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The [model] section for the network that the folder's config.json describes: name, options and
/// an empty flavor, of the first installed model that recognizes it (HfExchange::options_for).
/// Throws a config Error that ends with `advice` when none does.
Value model_of_hf_folder(const std::filesystem::path& folder, const Catalog& catalog,
                         Registry& registry, const std::string& advice);

}  // namespace titan::core
