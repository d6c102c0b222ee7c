// What a configuration can ask for that is not built yet, as one table: whoever builds a feature
// deletes its row. Asking for it is an error that says so.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// Applies the table to `config`. `taken`: keys that a chosen plugin acts on, so that they are
/// built.
void check_not_built(const JobConfig& config, const GivenValues& given,
                     const std::set<std::string>& taken, Diagnostics& diagnostics);

/// Components of torchtitan v0.2.2 that no plugin provides yet.
bool is_built_later(std::string_view kind, std::string_view name);

}  // namespace titan::core
