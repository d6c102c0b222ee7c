// titan doctor: looks at all that a run needs of this machine, and tells how to mend what is wrong.
// The exit code is 1 if there is a problem.
#include <filesystem>
#include <string>

#include <titan/command.h>
#include <titan/job_parts.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "checks.h"

namespace titan::commands {
namespace {

struct DoctorOptions {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> path;
  bool json = false;
};

class Doctor final : public Command {
 public:
  static constexpr CommandWords kWords{.most = SIZE_MAX, .takes_job = true};

  Doctor(const DoctorOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {}

  int run() override {
    Findings findings;
    std::vector<std::string> folders;
    for (const std::filesystem::path& folder : options_.path) folders.push_back(folder.string());
    const std::filesystem::path& program = context_.program;
    check_torch(program, findings);
    check_plugins(program, folders, findings);
    const JobNeeds needs =
        context_.words.empty() ? JobNeeds{} : check_job(program, context_.words, findings);
    check_gpus(program, needs, findings);
    check_memory(needs, findings);
    check_limits(findings);
    const std::filesystem::path folder =
        !options_.folder.empty()
            ? options_.folder
            : std::filesystem::path(context_.parts->dump_folder(context_.words));
    check_folder(folder, needs, findings);
    check_clock(folder, findings);
    check_network(findings);
    check_environment(findings);
    if (options_.json)
      print_json(to_json(findings.json(), 2) + "\n");
    else
      print(findings.text());
    return findings.count(Health::problem) > 0 ? kExitRuntimeError : kExitDone;
  }

 private:
  DoctorOptions options_;
  CommandContext context_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Doctor;
  using titan::commands::DoctorOptions;
  plugin.add<Doctor>("doctor", "find what keeps jobs from running on this machine, with remedies")
      .option("folder", &DoctorOptions::folder, "folder for checkpoints; default: job.dump_folder")
      .option("path", &DoctorOptions::path, "folder of further plugins; may be repeated")
      .option("json", &DoctorOptions::json, "print JSON");
}
