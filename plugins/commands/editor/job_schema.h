// The JSON Schema of a whole configuration, for editors and linters of TOML. Used by `titan
// schema`.
#pragma once

#include <titan/value.h>

namespace titan::commands {

/// JSON Schema draft 4 in the subset that taplo and tombi both understand: no $ref, no conditions.
/// `declared`: see declared.h. A section that several components share accepts the options of all
/// of them. A section of a third party's component that is not installed accepts everything.
Value job_schema(const Value& declared);

}  // namespace titan::commands
