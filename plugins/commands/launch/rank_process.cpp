#include "rank_process.h"

#include <utility>
#include <vector>

#include <titan/program/child.h>
#include <titan/program/error_file.h>
#include <titan/program/exit_codes.h>

#include "failure_text.h"

namespace titan::launching {

void RankProcess::send(int signal) const {
  if (is_running && ::kill(-pid, signal) != 0) ::kill(pid, signal);
}

std::string RankProcess::what_it_said(const RankOutput& output) const {
  if (error) return as_error(*error);
  const std::string message = read_error_file(error_file.string());
  return message.empty() ? output.last_words() : as_error(message);
}

std::string RankProcess::how_it_failed() const {
  return error ? "failed" : how_it_ended(status);
}

int RankProcess::exit_code() const {
  return error ? static_cast<int>(kExitRuntimeError) : exit_code_of(status);
}

RankProcess start_process(const LaunchPlan& plan, const Environment& environment, int local_rank,
                          const HostPort& master, int round, std::filesystem::path error_file,
                          RankOutput& output, const sigset_t& mask) {
  ControlPair control = make_control_pair();
  std::error_code ignored;
  std::filesystem::remove(error_file, ignored);  // an earlier start's
  std::vector<std::string> variables =
      rank_environment(plan, environment, local_rank, master, round);
  const auto set = [&](const std::string& name, const std::string& value) {
    std::erase_if(variables,
                  [&](const std::string& entry) { return entry.starts_with(name + "="); });
    variables.push_back(name + "=" + value);
  };
  set("TORCHELASTIC_ERROR_FILE", std::filesystem::absolute(error_file).string());
  set(ControlPair::kVariable, std::to_string(control.of_rank.get()));
  StartedChild child = start_child({plan.program, plan.arguments, std::move(variables)}, mask);
  output.attach(std::move(child.output), std::move(child.errors));
  return {.pid = child.pid,
          .is_running = true,
          .control = std::move(control.of_launcher),
          .error_file = std::move(error_file)};
}

}  // namespace titan::launching
