#include "address.h"

#include <titan/error.h>
#include <titan/program/host_port.h>

namespace titan::replicas {

std::string lighthouse_address(std::string_view text, const std::string& setting) {
  constexpr std::string_view kScheme = "http://";
  constexpr const char* kForm = "; write http://host:port, as in http://localhost:29510";
  TITAN_CHECK(!text.empty(), config, setting, ", the address of the lighthouse, is empty", kForm);
  TITAN_CHECK(!text.starts_with("https://"), config, setting, " = '", text,
              "': the lighthouse speaks no TLS", kForm);
  TITAN_CHECK(text.starts_with(kScheme), config, setting, " = '", text,
              "' does not begin with http://", kForm);
  std::string_view place = text.substr(kScheme.size());
  if (place.ends_with('/')) place.remove_suffix(1);
  TITAN_CHECK(place.find_first_of("/?#@") == place.npos, config, setting, " = '", text,
              "' has more than a host and a port", kForm);
  const HostPort parts = parse_host_port(place, setting);
  for (const char c : parts.host)
    TITAN_CHECK(c > ' ' && c < 127, config, setting, " = '", text,
                "' has a character that no host name has", kForm);
  return std::string(kScheme) + std::string(place);
}

}  // namespace titan::replicas
