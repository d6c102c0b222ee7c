// The table of features that a configuration can request but that are not built yet. Requesting one
// is an error. A change that builds a feature deletes its row. Used by resolve.cpp.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// Applies the table to `config`. `taken`: keys that a chosen plugin implements.
void check_not_built(const JobConfig& config, const GivenValues& given,
                     const std::set<std::string>& taken, Diagnostics& diagnostics);

/// Components of torchtitan v0.2.2 that no plugin provides yet.
bool is_built_later(std::string_view kind, std::string_view name);

}  // namespace titan::core
