#include "failure_text.h"

#include <csignal>

#include <titan/shown_text.h>

namespace titan::launching {

bool asks_for_the_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool is_error(const std::string& text) {
  return text.find("error: ") != std::string::npos;
}

std::string as_error(const std::string& message) {
  return (is_error(message) ? "" : "error: ") + message;
}

std::string seconds_text(std::chrono::milliseconds time) {
  const std::string text = std::to_string(time.count() / 1000);
  const auto rest = time.count() % 1000;
  return rest == 0 ? text + " s" : std::to_string(time.count()) + " ms";
}

std::string output_text(const RankOutput& output) {
  const auto& lines = output.last_lines();
  if (lines.empty()) return " without any output\n";
  if (output.is_shown()) return "; its output is above and in " + output.log().string() + "\n";
  std::string text = "; its last lines (" + output.log().string() + "):\n";
  for (const std::string& line : lines) text += "    " + printable(line, line.size()) + "\n";
  return text;
}

}  // namespace titan::launching
