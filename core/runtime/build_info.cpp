#include "core/runtime/build_info.h"

#include "core/plugin/manifest.h"

namespace titan::core {

std::string build_summary() {
  const Manifest& host = host_manifest();
  const auto field = [&](const char* key) { return std::string(host.field(key)); };
  return "titan " + field("sdk") + " (commit " + field("git") + ", LibTorch " + field("torch") +
         ", sdk " + field("sdk_abi") + ", " + field("compiler") + ", " + field("build_type") + ")";
}

}  // namespace titan::core
