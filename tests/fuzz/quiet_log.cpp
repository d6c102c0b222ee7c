// The log of the fuzzed readers: what they warn of is no finding.
#include <titan/log.h>

namespace titan::log {

void warn(std::string_view) {}

}  // namespace titan::log
