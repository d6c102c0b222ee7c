#include "peer_segments.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "fail_with_errno.h"

namespace titan::cpu {
namespace {

using Clock = std::chrono::steady_clock;

/// Time limit for exchanging the segments, once all ranks have said that they share a machine.
constexpr std::chrono::seconds kPassingTime{20};
constexpr const char* kAgreed = "ok";

std::string line_of(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string link_target(const char* file) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(file, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : "";
}

/// Equal for two processes only if one can pass a descriptor to the other.
std::string place_of_this_process() {
  const std::string boot_id = line_of("/proc/sys/kernel/random/boot_id");
  const std::string network = link_target("/proc/self/ns/net");
  if (boot_id.empty() || network.empty()) throw std::runtime_error("/proc cannot be read");
  return "boot " + boot_id + ", " + network + ", user " + std::to_string(::geteuid());
}

std::string random_name() {
  std::random_device random;
  std::string name = "titan-";
  for (int i = 0; i < 4; ++i) {
    const std::string word = std::to_string(uint64_t{1} << 32 | random());
    name += word;
  }
  return name;
}

/// In the abstract namespace, without a file.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

Descriptor new_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) fail_with_errno("socket");
  return socket;
}

Descriptor listen_at(const std::string& name, int size) {
  Descriptor socket = new_socket();
  const auto [address, length] = address_of(name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    fail_with_errno("bind");
  if (::listen(socket.get(), size) != 0) fail_with_errno("listen");
  return socket;
}

Descriptor connect_to(const std::string& name) {
  Descriptor socket = new_socket();
  const auto [address, length] = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    fail_with_errno("connect");
  return socket;
}

void wait_for_input(const Descriptor& socket, Clock::time_point deadline) {
  pollfd polled{.fd = socket.get(), .events = POLLIN, .revents = 0};
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = ::poll(&polled, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (ready > 0) return;
    if (ready == 0) throw std::runtime_error("a rank did not send its segment in time");
    if (errno != EINTR) fail_with_errno("poll");
  }
}

union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> space;
};

/// Sends this rank's number and the descriptor of its segment.
void send_segment(const Descriptor& socket, int32_t rank, const Descriptor& segment) {
  iovec data{.iov_base = &rank, .iov_len = sizeof rank};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space.data();
  message.msg_controllen = control.space.size();
  cmsghdr* attached = CMSG_FIRSTHDR(&message);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = segment.get();
  std::memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  if (::sendmsg(socket.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof rank))
    fail_with_errno("sendmsg");
}

struct Received {
  int32_t rank = -1;
  Descriptor segment;
};

Received receive_segment(const Descriptor& socket, Clock::time_point deadline) {
  wait_for_input(socket, deadline);
  Received received;
  iovec data{.iov_base = &received.rank, .iov_len = sizeof received.rank};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space.data();
  message.msg_controllen = control.space.size();
  const ssize_t length = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (length < 0) fail_with_errno("recvmsg");
  for (cmsghdr* attached = CMSG_FIRSTHDR(&message); attached;
       attached = CMSG_NXTHDR(&message, attached)) {
    if (attached->cmsg_level != SOL_SOCKET || attached->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(attached), sizeof fd);
    received.segment = Descriptor(fd);
  }
  if (length != static_cast<ssize_t>(sizeof received.rank) || received.segment.get() < 0)
    throw std::runtime_error("another rank closed its connection without sending its segment");
  return received;
}

/// The peer belongs to the same user; every user can reach an abstract name.
bool is_ours(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

/// One rank's side of the rendezvous.
class Passing {
 public:
  Passing(const dist::Endpoint& endpoint)
      : endpoint_(endpoint), layout_(endpoint.size), prefix_(endpoint.name + "/shared_memory/") {}

  /// Listens and returns this rank's offer, "NAME PLACE"; "no REASON" if it cannot share memory.
  std::string offer() {
    try {
      segments_.push_back(Segment::create(layout_, endpoint_.rank, own_));
      name_ = random_name();
      listener_ = listen_at(name_, endpoint_.size);
      return name_ + " " + place_of_this_process();
    } catch (const std::exception& e) {
      return std::string("no ") + e.what();
    }
  }

  /// Writes `text` under `key` and returns the texts of all ranks. Throws when one is missing.
  std::vector<std::string> exchange(const std::string& key, const std::string& text) {
    endpoint_.store.set(prefix_ + key + std::to_string(endpoint_.rank),
                        std::vector<uint8_t>(text.begin(), text.end()));
    std::vector<std::string> keys, texts;
    for (int rank = 0; rank < endpoint_.size; ++rank)
      keys.push_back(prefix_ + key + std::to_string(rank));
    endpoint_.store.wait(keys, endpoint_.timeout);
    for (const std::string& of_rank : keys) {
      const std::vector<uint8_t> bytes = endpoint_.store.get(of_rank);
      texts.emplace_back(bytes.begin(), bytes.end());
    }
    return texts;
  }

  /// Each rank connects to lower ranks and accepts higher ones. `names`: of all listeners.
  Members pass(const std::vector<std::string>& names) {
    const auto deadline = Clock::now() + std::min<Clock::duration>(kPassingTime, endpoint_.timeout);
    const auto size = static_cast<size_t>(endpoint_.size);
    const auto own = static_cast<size_t>(endpoint_.rank);
    std::vector<Descriptor> connections(size), descriptors(size);
    for (size_t rank = 0; rank < own; ++rank) {
      connections[rank] = connect_to(names[rank]);
      send_segment(connections[rank], endpoint_.rank, own_);
    }
    for (size_t num_come = own + 1; num_come < size;) {
      wait_for_input(listener_, deadline);
      Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.get() < 0 || !is_ours(socket)) continue;
      Received received = receive_segment(socket, deadline);
      const auto rank = static_cast<size_t>(received.rank);
      if (received.rank <= endpoint_.rank || rank >= size || connections[rank].get() >= 0)
        throw std::runtime_error("rank " + std::to_string(received.rank) +
                                 " connected unexpectedly");
      send_segment(socket, endpoint_.rank, own_);
      connections[rank] = std::move(socket);
      descriptors[rank] = std::move(received.segment);
      ++num_come;
    }
    for (size_t rank = 0; rank < own; ++rank)
      descriptors[rank] = receive_segment(connections[rank], deadline).segment;

    Members members{.rank = endpoint_.rank, .layout = layout_};
    members.segments.reserve(size);
    for (size_t rank = 0; rank < size; ++rank)
      members.segments.push_back(
          rank == own ? std::move(segments_.front())
                      : Segment::map(layout_, static_cast<int>(rank), descriptors[rank]));
    members.connections = std::move(connections);
    return members;
  }

 private:
  const dist::Endpoint& endpoint_;
  SegmentLayout layout_;
  std::string prefix_, name_;
  Descriptor own_, listener_;
  std::vector<Segment> segments_;  // this rank's, until pass() moves it
};

std::string in_words(size_t rank, const std::string& why) {
  return "rank " + std::to_string(rank) + " of the group: " + why;
}

}  // namespace

PeerSegments connect_segments(const dist::Endpoint& endpoint) {
  Passing passing(endpoint);
  std::vector<std::string> names, places;
  for (const std::string& offer : passing.exchange("offer/", passing.offer())) {
    const size_t space = offer.find(' ');
    names.push_back(offer.substr(0, space));
    places.push_back(offer.substr(space + 1));
    if (names.back() == "no") return {{}, in_words(names.size() - 1, places.back())};
    if (places.back() != places.front())
      return {{},
              in_words(names.size() - 1,
                       "it runs in " + places.back() + ", rank 0 in " + places.front())};
  }
  PeerSegments segments;
  std::string verdict = kAgreed;
  try {
    segments.members = passing.pass(names);
  } catch (const std::exception& e) {
    verdict = e.what();
  }
  const std::vector<std::string> verdicts = passing.exchange("verdict/", verdict);
  for (size_t rank = 0; rank < verdicts.size(); ++rank)
    if (verdicts[rank] != kAgreed) return {{}, in_words(rank, verdicts[rank])};
  return segments;
}

}  // namespace titan::cpu
