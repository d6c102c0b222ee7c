#include "core/runtime/groups/interruptible_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <titan/error.h>
#include <titan/program/clock.h>
#include <titan/program/descriptor.h>

#include "core/runtime/groups/quiet_attempts.h"

namespace titan::core {
namespace {

/// Longest attempt to connect, which cannot be interrupted.
constexpr std::chrono::milliseconds kAttempt{2000};

void require_going_on(const IsInterrupted& is_interrupted) {
  TITAN_CHECK(!is_interrupted(), distributed, "the wait for other ranks was interrupted");
}

/// Polls `is_so`; false if it did not hold within `timeout`.
template <class Condition>
bool poll_until(const Condition& is_so, std::chrono::milliseconds timeout,
                const IsInterrupted& is_interrupted) {
  const double give_up = monotonic_seconds() + std::chrono::duration<double>(timeout).count();
  auto pause = std::chrono::milliseconds(1);
  while (!is_so()) {
    require_going_on(is_interrupted);
    if (monotonic_seconds() > give_up) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
  return true;
}

bool is_listened_to(const sockaddr_in& address) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.is_open() &&
         ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Calls `connect`, each call one attempt, until it succeeds; throws its last error after
/// `timeout`.
template <class Connect>
auto connect_within(std::chrono::milliseconds timeout, const IsInterrupted& is_interrupted,
                    const Connect& connect) {
  const double give_up = monotonic_seconds() + std::chrono::duration<double>(timeout).count();
  for (;;) {
    require_going_on(is_interrupted);
    try {
      return connect();
    } catch (const std::exception&) {
      if (monotonic_seconds() > give_up) throw;
    }
  }
}

}  // namespace

InterruptibleStore::InterruptibleStore(std::string prefix, c10::intrusive_ptr<c10d::Store> store,
                                       std::chrono::milliseconds timeout,
                                       IsInterrupted is_interrupted, Connect connect)
    : PrefixStore(std::move(prefix), std::move(store)),
      is_interrupted_(std::move(is_interrupted)),
      connect_(std::move(connect)) {
  timeout_ = timeout;
}

c10::intrusive_ptr<c10d::Store> InterruptibleStore::clone() {
  const QuietAttempts quiet;
  return c10::make_intrusive<InterruptibleStore>(prefix_, connect_(timeout_), timeout_,
                                                 is_interrupted_, connect_);
}

bool InterruptibleStore::check(const std::vector<std::string>& keys) {
  require_going_on(is_interrupted_);
  return PrefixStore::check(keys);
}

std::vector<uint8_t> InterruptibleStore::get(const std::string& key) {
  wait({key});
  return PrefixStore::get(key);
}

std::vector<std::vector<uint8_t>> InterruptibleStore::multiGet(
    const std::vector<std::string>& keys) {
  wait(keys);
  return PrefixStore::multiGet(keys);
}

void InterruptibleStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void InterruptibleStore::wait(const std::vector<std::string>& keys,
                              const std::chrono::milliseconds& timeout) {
  TITAN_CHECK(poll_until([&] { return check(keys); }, timeout, is_interrupted_), distributed,
              "wait timeout after ", timeout.count(), " ms, keys: ", keys.front(),
              keys.size() > 1 ? " ..." : "");
}

c10::intrusive_ptr<c10d::Store> connect_interruptibly(const std::string& prefix,
                                                      const std::string& address,
                                                      const c10d::TCPStoreOptions& options,
                                                      const IsInterrupted& is_interrupted) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(options.port);
  TITAN_ASSERT(::inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1, "'", address,
               "' is no address of IPv4");
  c10d::TCPStoreOptions attempt = options;
  attempt.isServer = false;
  attempt.timeout = std::min(options.timeout, kAttempt);
  const InterruptibleStore::Connect connect = [=](std::chrono::milliseconds timeout) {
    return connect_within(timeout, is_interrupted, [&] {
      poll_until([&] { return is_listened_to(place); }, attempt.timeout, is_interrupted);
      // throws if its host has ended since
      return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::TCPStore>(address, attempt));
    });
  };
  c10::intrusive_ptr<c10d::Store> store;
  if (options.isServer)
    store = c10::make_intrusive<c10d::TCPStore>(address, options);
  else
    store = connect(options.timeout);
  return c10::make_intrusive<InterruptibleStore>(prefix, std::move(store), options.timeout,
                                                 is_interrupted, connect);
}

}  // namespace titan::core
