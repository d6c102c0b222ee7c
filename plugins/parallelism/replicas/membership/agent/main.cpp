// titan-replica: speaks to torchft's lighthouse for one replica group, so that a training run does
// not load libcurl and its dependencies.
//
// Its argument is a JSON object: {"lighthouse", "setting", "id", "beat_ms", "connect_timeout_ms",
// "parent"}. Standard input and output: lines of JSON (agent_lines.h). It exits at the end of its
// input or of its parent, and ignores signals to the run's process group, because rank 0 decides
// when the group leaves.
#include <curl/curl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <string>

#include <titan/error.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "../agent_lines.h"
#include "../agent_rules.h"
#include "calls.h"

namespace {

using namespace titan::replicas;
using std::chrono::milliseconds;

constexpr milliseconds kHeartbeatTimeout{5000};

bool say(const titan::Value& line) {
  return write_all(STDOUT_FILENO, to_json(line) + "\n");
}

/// Passes what has arrived to the rules; false at the end of the input.
bool read_lines(LineBuffer& buffer, AgentRules& rules) {
  char bytes[65536];
  const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  if (size == 0) return false;
  buffer.add({bytes, static_cast<size_t>(size)});
  for (std::string line; buffer.next(line);)
    rules.take_line(line, std::chrono::steady_clock::now());
  return true;
}

void run(const AgentRulesOptions& options) {
  CurlCalls calls(options.lighthouse, kHeartbeatTimeout);
  bool has_reader = true;
  AgentRules rules(options, calls,
                   [&](const titan::Value& line) { has_reader = has_reader && say(line); });
  LineBuffer buffer;
  while (has_reader && !rules.has_failed()) {
    const Time now = std::chrono::steady_clock::now();
    rules.tick(now);
    const auto limit = std::chrono::ceil<milliseconds>(rules.next_tick(now) - now);
    if (calls.wait(STDIN_FILENO, limit) && !read_lines(buffer, rules)) return;
    const Time later = std::chrono::steady_clock::now();
    if (const auto end = calls.take_heartbeat_end()) rules.heartbeat_ended(*end, later);
    if (const auto end = calls.take_quorum_end()) rules.quorum_ended(*end, later);
  }
}

AgentRulesOptions options_of(const titan::Value& value) {
  return {.lighthouse = value.at("lighthouse").as_string(),
          .setting = value.at("setting").as_string(),
          .id = value.at("id").as_string(),
          .beat = milliseconds(value.at("beat_ms").as_integer()),
          .connect_timeout = milliseconds(value.at("connect_timeout_ms").as_integer())};
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  if (argc != 2) {
    titan::print(
        "titan-replica speaks to torchft's lighthouse; Titan's plugin replicas starts it\n");
    return titan::kExitConfigError;
  }
  try {
    const titan::Value settings = titan::parse_json(argv[1]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != settings.at("parent").as_integer()) return titan::kExitDone;
    TITAN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, io, "cannot start libcurl");
    run(options_of(settings));
    return titan::kExitDone;
  } catch (const std::exception& error) {
    say(titan::Value::map({{"failure", std::string("titan-replica: ") + error.what()}}));
    return titan::kExitRuntimeError;
  }
}
