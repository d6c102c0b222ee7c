// A stand-in for rank 0 of a replica group, and a reader and writer of messages.
//
//   membership_probe join URL ID PROGRAM CONNECT_TIMEOUT_MS
//     Each line of standard input is a member (agent_lines.h, with any id), with which it asks. It
//     prints the members as {"quorum": ...}, or {"failure": ...} and ends. At the end of its input
//     it leaves. Used by tests/end_to_end/membership_test.py.
//   membership_probe write, membership_probe read
//     From members to requests, and from answers to their members; messages are hexadecimal. Used
//     by tests/referee/membership_referee.py.
#include <charconv>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include <titan/error.h>
#include <titan/program/terminal.h>

#include "plugins/parallelism/replicas/membership/agent_lines.h"
#include "plugins/parallelism/replicas/membership/wire.h"

namespace {

using namespace titan::replicas;

void print_line(titan::Value value) {
  titan::print_json(to_json(value) + "\n");
  std::fflush(stdout);
}

void join(char** words) {
  std::string id = words[1];
  const auto membership =
      start_agent({.lighthouse = words[0],
                   .id = id,
                   .connect_timeout = std::chrono::milliseconds(std::stoll(words[3])),
                   .program = words[2]});
  for (std::string line; std::getline(std::cin, line);) {
    Member member = member_of(titan::parse_json(line));
    member.id = id;
    membership->ask(member);
    std::optional<Quorum> quorum;
    while (!quorum) quorum = membership->answer(std::chrono::milliseconds(50));
    id = quorum->self;
    print_line(titan::Value::map({{"quorum", to_value(*quorum)}}));
  }
  membership->leave();
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4U];
    hex += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return hex;
}

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

void convert(bool writes) {
  for (std::string line; std::getline(std::cin, line);) {
    if (writes) {
      const Member member = member_of(titan::parse_json(line));
      print_line(titan::Value::map({{"quorum", hex_of(quorum_request(member))},
                                    {"heartbeat", hex_of(heartbeat_request(member.id))}}));
    } else {
      print_line(to_value(quorum_response(bytes_of(line))));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "join" && argc == 6)
      join(argv + 2);
    else if (mode == "write" || mode == "read")
      convert(mode == "write");
    else
      return 2;
    return 0;
  } catch (const titan::Error& error) {
    print_line(titan::Value::map({{"failure", error.what()}}));
    return 1;
  }
}
