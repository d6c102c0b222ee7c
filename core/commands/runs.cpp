// The commands that look at what runs wrote: titan-runs has them (core/commands/runs).
#include "core/commands/command.h"
#include "core/commands/hand_over.h"

namespace titan::core {
namespace {

[[noreturn]] void hand_over_to_runs(const char* command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), command);
  hand_over("titan-runs", arguments);
}

}  // namespace

int run_flight(const std::vector<std::string>& arguments) {
  hand_over_to_runs("flight", arguments);
}
int run_compare(const std::vector<std::string>& arguments) {
  hand_over_to_runs("compare", arguments);
}
int run_report(const std::vector<std::string>& arguments) {
  hand_over_to_runs("report", arguments);
}
int run_top(const std::vector<std::string>& arguments) {
  hand_over_to_runs("top", arguments);
}
int run_trace(const std::vector<std::string>& arguments) {
  hand_over_to_runs("trace", arguments);
}

}  // namespace titan::core
