// Applies the declarations of plugins on their options: which ones follow from the core's keys
// (fed_by), and which rules hold between them and the job (check). Used by resolve.cpp.
#pragma once

#include <titan/plugin.h>
#include <titan/value.h>

#include "core/config/rules/cross_rules.h"
#include "core/config/schema/job_config.h"

namespace titan::core {

/// For each option of `schema` that is fed by a key of the core, the value derived from that key;
/// options whose key is unset are left out. The component's own section takes precedence. Throws a
/// plugin Error for a key that the core does not have.
Value fed_options(const Schema& schema, const JobConfig& config);

/// Checks the rules of the component on `options`, a struct of its schema from `section`. Reports
/// errors at the option, at the key that feeds it, or where the component was chosen.
void check_component(const Component& component, const void* options, const std::string& section,
                     const SourceRange& chosen, const RuleContext& context);

}  // namespace titan::core
