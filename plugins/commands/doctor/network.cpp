// Sockets, names and ports of this machine.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include <titan/error.h>
#include <titan/program/descriptor.h>
#include <titan/program/environment.h>
#include <titan/program/host.h>

#include "checks.h"

namespace titan::commands {
namespace {

/// 0, or the error of listening at a port of all addresses.
int listen_error(int port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) return errno;
  return ::listen(socket.get(), 1) == 0 ? 0 : errno;
}

/// A port that no process listens at now.
int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  socklen_t size = sizeof place;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0)
    return 29500;
  return ntohs(place.sin_port);
}

/// 0, or the error of a connection from this machine to itself.
int loopback_error() {
  const Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  auto* address = reinterpret_cast<sockaddr*>(&place);
  const bool works = ::bind(server.get(), address, size) == 0 && ::listen(server.get(), 1) == 0 &&
                     ::getsockname(server.get(), address, &size) == 0 &&
                     ::connect(client.get(), address, size) == 0;
  return works ? 0 : errno;
}

void check_master_port(const Environment& environment, Findings& findings) {
  if (!environment.has("MASTER_PORT")) return;
  std::optional<int> port;
  try {
    port = environment.integer("MASTER_PORT", 1, 65535);
  } catch (const Error& e) {
    return findings.add({"port.master", Health::problem, e.message(), "a port from 1 to 65535",
                         "ranks cannot find each other", "unset MASTER_PORT"});
  }
  const std::string rank = environment.get("RANK").value_or("0");
  if (rank != "0")
    return findings.ok("port.master",
                       std::to_string(*port) + "; rank " + rank + " does not listen there");
  const int error = listen_error(*port);
  if (error == 0) return findings.ok("port.master", std::to_string(*port) + " is free");
  findings.add({"port.master", Health::problem,
                "MASTER_PORT " + std::to_string(*port) + ": " + system_message(error),
                "a free port", "rank 0 cannot listen, and no rank starts",
                "export MASTER_PORT=" + std::to_string(free_port())});
}

}  // namespace

void check_network(Findings& findings) {
  if (const int error = loopback_error(); error != 0)
    findings.add({"network.loopback", Health::problem,
                  "no connection to 127.0.0.1: " + system_message(error), "a loopback interface",
                  "runs of several ranks on this machine", "ip link set lo up"});
  else
    findings.ok("network.loopback", "works");
  const std::string name = host_name();
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, nullptr, &found); error != 0)
    findings.add({"network.name", Health::warning, name + ": " + ::gai_strerror(error),
                  "a name with an address",
                  "runs of several machines whose rank 0 is found by this name",
                  "echo \"127.0.1.1 " + name + "\" >> /etc/hosts"});
  else
    findings.ok("network.name", name);
  if (found) ::freeaddrinfo(found);
  check_master_port(Environment::of_process(), findings);
}

}  // namespace titan::commands
