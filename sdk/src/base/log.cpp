#include <titan/log.h>

#include <atomic>
#include <memory>
#include <string>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <titan/shown_text.h>

namespace titan::log {
namespace {

std::atomic<int> num_quiet = 0;

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "titan", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("[titan] %Y-%m-%d %H:%M:%S %^%l%$ %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void info(std::string_view message) {
  if (num_quiet == 0) logger().info("{}", printable_message(message));
}
void warn(std::string_view message) {
  if (num_quiet == 0) logger().warn("{}", printable_message(message));
}
void error(std::string_view message) {
  logger().error("{}", printable_message(message));
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
