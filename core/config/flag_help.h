// Every flag there is, from the same schemas that check the file: for --help, `titan describe` and
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

/// The flags of a run as `sources` choose its components, in the order of the documentation. What
/// is wrong with the sources is left to resolve().
std::vector<FlagHelp> list_flags(const JobSources& sources, ComponentLookup& lookup);

}  // namespace titan::core
