// Lists every flag, from the same schemas that check the file. Used by --help, `titan describe` and
// shell completion.
#pragma once

#include <string>
#include <vector>

#include "core/config/resolve.h"
#include "core/config/schema/component_lookup.h"

namespace titan::core {

struct FlagHelp {
  std::string flag;           ///< "--training.steps"
  std::string negative_flag;  ///< of a boolean: "--checkpoint.no_enable"; else empty
  std::string section;        ///< "training"
  std::string allowed;        ///< "integer >= 1"
  std::string default_value;  ///< as JSON; "unset"
  std::string help;
  std::string component;  ///< "optimizer 'AdamW'"; empty for the core's own
};

/// The flags of a run with the components that `sources` choose, in the order of the documentation.
/// Ignores mistakes in the sources; resolve() reports them.
std::vector<FlagHelp> list_flags(const JobSources& sources, ComponentLookup& lookup);

}  // namespace titan::core
