#include "program.h"

#include <csignal>
#include <map>
#include <utility>

#include <titan/program/child.h>
#include <titan/program/clock.h>
#include <titan/program/environment.h>
#include <titan/program/text.h>

#include "../../common/child_output.h"

namespace titan::conformance {
namespace {

constexpr size_t kMostOutput = 1 << 20;  // bytes kept of each stream

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::map<std::string, std::string> all = Environment::of_process().variables();
  for (const std::string& entry : more)
    all[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

ChildCommand command_of(const ProgramCall& call) {
  const std::string program = call.program.string();
  std::vector<std::string> environment = environment_with(call.variables);
  if (call.folder.empty()) return {program, call.arguments, std::move(environment)};
  std::vector<std::string> words = {"-c", "cd \"$1\" && shift && exec \"$@\"", "sh",
                                    call.folder.string(), program};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return {"/bin/sh", std::move(words), std::move(environment)};
}

std::string last_lines(const std::string& text, size_t most) {
  std::string_view rest = trimmed(text);
  size_t begin = rest.size();
  for (size_t i = 0; i < most && begin != std::string_view::npos && begin > 0; ++i)
    begin = rest.rfind('\n', begin - 1);
  if (begin != std::string_view::npos) rest.remove_prefix(begin);
  return std::string(trimmed(rest));
}

}  // namespace

std::string ProgramRun::end() const {
  std::string text = ran_out_of_time ? "did not finish within " +
                                           std::to_string(static_cast<int64_t>(seconds)) + " s"
                                     : how_it_ended(status);
  const size_t error = ("\n" + errors).rfind("\nerror:");
  const std::string said = error != std::string::npos
                               ? std::string(trimmed(errors.substr(error)))
                               : last_lines(errors.empty() ? output : errors, 6);
  return said.empty() ? text : text + ": " + said;
}

ProgramRun run_program(const ProgramCall& call) {
  sigset_t none;
  ::sigemptyset(&none);
  const double begin = monotonic_seconds();
  commands::ChildOutput output =
      commands::output_of(command_of(call), none, call.limit, kMostOutput);
  return {.ran_out_of_time = output.is_late,
          .status = output.status,
          .code = exit_code_of(output.status),
          .output = std::move(output.out),
          .errors = std::move(output.errors),
          .seconds = monotonic_seconds() - begin};
}

}  // namespace titan::conformance
