#include <titan/log.h>

#include <atomic>
#include <memory>
#include <string>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <titan/shown_text.h>

#include "status_line_pause.h"

namespace titan::log {
namespace {

std::atomic<int> num_quiet = 0;

spdlog::logger& logger() {
  // never destroyed: abandoned threads that hang may still log while the process ends
  static spdlog::logger& instance = *[] {
    auto made = std::make_unique<spdlog::logger>(
        "titan", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("[titan] %Y-%m-%d %H:%M:%S %^%l%$ %v");
    made->flush_on(spdlog::level::info);
    return made.release();
  }();
  return instance;
}

void say(spdlog::level::level_enum level, std::string_view message) {
  const StatusLinePause pause;
  logger().log(level, "{}", printable_message(message));
}

}  // namespace

void info(std::string_view message) {
  if (num_quiet == 0) say(spdlog::level::info, message);
}
void warn(std::string_view message) {
  if (num_quiet == 0) say(spdlog::level::warn, message);
}
void error(std::string_view message) {
  say(spdlog::level::err, message);
}

Quiet::Quiet() {
  ++num_quiet;
}

Quiet::~Quiet() {
  --num_quiet;
}

void set_prefix(std::string_view prefix) {
  const std::string head = prefix.empty() ? "" : std::string(prefix) + " ";
  logger().set_pattern(head + "[titan] %Y-%m-%d %H:%M:%S %^%l%$ %v");
}

}  // namespace titan::log
