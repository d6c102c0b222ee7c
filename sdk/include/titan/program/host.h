// The name of this machine. Used in files and messages in which a run names its host.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(host);

namespace titan {

/// Empty where the system reports none.
inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace titan
