// The commands that programs beside titan have: core/commands/models and core/commands/runs.
#include "core/commands/command.h"
#include "core/commands/hand_over.h"

namespace titan::core {
namespace {

[[noreturn]] void hand_over_command(const char* program, const char* command,
                                    std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), command);
  hand_over(program, arguments);
}

[[noreturn]] void hand_over_to_models(const char* command,
                                      const std::vector<std::string>& arguments) {
  hand_over_command("titan-models", command, arguments);
}

[[noreturn]] void hand_over_to_runs(const char* command,
                                    const std::vector<std::string>& arguments) {
  hand_over_command("titan-runs", command, arguments);
}

}  // namespace

int run_generate(const std::vector<std::string>& arguments) {
  hand_over_to_models("generate", arguments);
}
int run_evaluate(const std::vector<std::string>& arguments) {
  hand_over_to_models("evaluate", arguments);
}
int run_convert(const std::vector<std::string>& arguments) {
  hand_over_to_models("convert", arguments);
}

int run_bench(const std::vector<std::string>& arguments) {
  hand_over_to_runs("bench", arguments);
}
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
