// Replaces getnameinfo of the C library in the programs that train: it returns addresses as numbers
// and asks no name server.
//
// c10d calls it for each end of each connection, to have a name for its messages; one caller is the
// only thread of the store. If the name server does not answer, each call blocks for the resolver's
// limit, 5 s or more: all ranks wait for the store, and connections exceed their own limits.
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

/// As in POSIX, with NI_NUMERICHOST unless the flags require a name (NI_NAMEREQD).
extern "C" __attribute__((visibility("default"))) int getnameinfo(
    const sockaddr* address, socklen_t address_length, char* host, socklen_t host_length,
    char* service, socklen_t service_length, int flags) {
  using Function = decltype(&::getnameinfo);
  static const auto of_libc = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getnameinfo"));
  if ((flags & NI_NAMEREQD) == 0) flags |= NI_NUMERICHOST;
  return of_libc(address, address_length, host, host_length, service, service_length, flags);
}
