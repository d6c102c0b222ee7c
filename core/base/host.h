// The machine that a process runs on. Used by what runs write of themselves.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace titan::core {

/// Empty where the system does not tell.
inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace titan::core
