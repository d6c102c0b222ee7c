// titan-post: sends HTTP requests for a plugin, so that a training run does not load libcurl and
// its dependencies.
//
// Standard input: one request per line, {"url", "body", "headers", "user", "password", "ca_file",
// "timeout_s"}; without a body it is a GET. Standard output: one line per request, in order,
// {"status", "body", "problem"}. It exits at the end of its input and ignores signals to the run's
// process group, so that the last requests of a run are sent too.
#include <curl/curl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include <titan/error.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "http_request.h"

namespace {

using titan::post::Answer;

/// False when the reader is gone.
bool write_all(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += static_cast<size_t>(written);
  }
  return true;
}

Answer answer_to(const std::string& line, titan::post::Sender& sender) {
  try {
    return sender.send(titan::post::request_of(titan::parse_json(line)));
  } catch (const std::exception& error) {
    return {.problem = std::string("not a request: ") + error.what()};
  }
}

}  // namespace

int main(int argc, char**) {
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  if (argc > 1) {
    titan::print(
        "titan-post reads HTTP requests from standard input, one line of JSON each; "
        "Titan's loggers start it\n");
    return titan::kExitConfigError;
  }
  try {
    TITAN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, io, "cannot start libcurl");
    titan::post::Sender sender;
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);)
      if (!write_all(to_json(value_of(answer_to(line, sender))) + "\n")) break;
    return titan::kExitDone;
  } catch (const std::exception& error) {
    titan::print_error(error.what());
    return titan::kExitRuntimeError;
  }
}
