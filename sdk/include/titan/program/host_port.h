// Parses host:port in flags and variables. Used for the rendezvous of ranks.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

struct HostPort {
  std::string host;
  int port = 0;
};

/// "host:port", "10.0.0.1:29500" or "[fe80::1]:29500". Throws a config Error that names `what`.
TITAN_API HostPort parse_host_port(std::string_view text, const std::string& what);

}  // namespace titan
