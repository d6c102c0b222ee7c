#include <titan/program/host_port.h>

#include <titan/error.h>
#include <titan/program/environment.h>

namespace titan {

HostPort parse_host_port(std::string_view text, const std::string& what) {
  const size_t colon = text.rfind(':');
  TITAN_CHECK(colon != std::string_view::npos && colon > 0, config, what, " = '", text,
              "' is not of the form host:port");
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else
    TITAN_CHECK(host.find_first_of(":[] ") == std::string_view::npos, config, what, " = '", text,
                "' is not of the form host:port; write an IPv6 address in brackets");
  const int64_t port = parse_integer(text.substr(colon + 1), "the port in " + what, 1, 65535);
  return {std::string(host), static_cast<int>(port)};
}

}  // namespace titan
