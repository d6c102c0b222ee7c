#include <titan/program/rank_control.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <titan/program/environment.h>
#include <titan/program/utf8.h>
#include <titan/value.h>

namespace titan {
namespace {

constexpr size_t kLongestText = 16 * 1024;     // a packet must fit the buffer of a socket
constexpr size_t kLongestPacket = 128 * 1024;  // JSON escapes may lengthen a text
constexpr std::array<std::string_view, 6> kKinds = {"begin",    "abort",  "end",
                                                    "training", "failed", "ready"};

std::string to_packet(const ControlMessage& message) {
  return to_json(Value::map({{"kind", std::string(kKinds[static_cast<size_t>(message.kind)])},
                             {"round", static_cast<int64_t>(message.round)},
                             {"rank", static_cast<int64_t>(message.rank)},
                             {"port", static_cast<int64_t>(message.port)},
                             {"text", as_utf8(message.text.substr(0, kLongestText))}}));
}

ControlMessage from_packet(const std::string& packet) {
  const Value value = parse_json(packet);
  const auto kind = std::find(kKinds.begin(), kKinds.end(), value.at("kind").as_string());
  TITAN_CHECK(kind != kKinds.end(), io,
              "titan launch and titan train do not understand each other: ", packet,
              "; use both of one installation");
  const auto number = [&](const char* name) {
    return static_cast<int>(value.at(name).as_integer());
  };
  return {.kind = static_cast<ControlMessage::Kind>(kind - kKinds.begin()),
          .round = number("round"),
          .rank = number("rank"),
          .port = number("port"),
          .text = value.at("text").as_string()};
}

}  // namespace

std::optional<ControlEnd> ControlEnd::of_process() {
  const auto text = Environment::of_process().get(ControlPair::kVariable);
  if (!text) return std::nullopt;
  const int number = static_cast<int>(parse_integer(
      *text, std::string("environment variable ") + ControlPair::kVariable, 3, 1 << 20));
  int type = 0;
  socklen_t size = sizeof type;
  TITAN_CHECK(
      ::getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET, io,
      ControlPair::kVariable, " = ", number, " is no channel to titan launch; unset it");
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  ::unsetenv(ControlPair::kVariable);
  return ControlEnd(Descriptor(number));
}

bool ControlEnd::send(const ControlMessage& message) {
  const std::string packet = to_packet(message);
  ssize_t count;
  do count = ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(packet.size());
}

std::optional<ControlMessage> ControlEnd::receive() {
  if (!socket_.is_open() || is_closed_) return std::nullopt;
  std::vector<char> packet(kLongestPacket);
  ssize_t count;
  do count = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (count <= 0) {
    is_closed_ = true;
    return std::nullopt;
  }
  return from_packet(std::string(packet.data(), static_cast<size_t>(count)));
}

ControlPair make_control_pair() {
  int ends[2];
  TITAN_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, io,
              "cannot make a channel to a rank: ", system_message(errno));
  ControlPair pair{ControlEnd(Descriptor(ends[0])), Descriptor(ends[1])};
  ::fcntl(ends[1], F_SETFD, 0);
  return pair;
}

}  // namespace titan
