#include "slurm_array.h"

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/shell_text.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

/// The value of an #SBATCH option: sbatch reads '%' as a pattern, and quotes as a shell does.
std::string sbatch_path(const fs::path& path) {
  std::string text;
  for (const char c : fs::absolute(path).lexically_normal().string())
    text += c == '%' ? "%%" : std::string(1, c);
  TITAN_CHECK(text.find_first_of("\"\n\r") == text.npos, config, "sbatch takes no quote and no ",
              "line end in a path, got ", in_quotes(text), "; choose another 'folder'");
  return "\"" + text + "\"";
}

}  // namespace

std::string slurm_array_script(const SweepFile& sweep, const std::vector<SweepRun>& runs,
                               const fs::path& program, const fs::path& folder) {
  TITAN_CHECK(!runs.empty(), config, "every run of the sweep has finished; see: titan sweep ",
              sweep.file.string(), " --collect");
  const std::string limit = sweep.parallel > 0 ? "%" + std::to_string(sweep.parallel) : "";
  std::string text =
      "#!/bin/bash\n"
      "# Written by titan sweep: an array task trains one run. After exit code 75, a stop with a\n"
      "# checkpoint, the task is requeued and the run resumes.\n"
      "#SBATCH --job-name=sweep\n"
      "#SBATCH --array=0-" +
      std::to_string(runs.size() - 1) + limit +
      "\n"
      "#SBATCH --ntasks=" +
      std::to_string(sweep.ranks) +
      "\n"
      "#SBATCH --signal=USR1@120\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --output=" +
      sbatch_path(sweep.folder / "logs/slurm-");
  text.insert(text.size() - 1, "%A_%a.log");
  text += "\n";
  for (const std::string& option : sweep.slurm_options) text += "#SBATCH " + option + "\n";
  text += "\ncd " + shell_word(folder.string()) + " || exit 1\n";
  text += sweep.threads > 0 ? "export OMP_NUM_THREADS=" + std::to_string(sweep.threads) + "\n"
                            : "export OMP_NUM_THREADS=\"${SLURM_CPUS_PER_TASK:-1}\"\n";
  text +=
      "terminated=\n"
      "trap 'terminated=1' TERM  # from scancel or a preemption: Slurm decides what follows\n"
      "\n"
      "case \"$SLURM_ARRAY_TASK_ID\" in\n";
  for (size_t i = 0; i < runs.size(); ++i)
    text += "  " + std::to_string(i) + ") run=(" + shell_line(words_of(runs[i], 1)) + ") ;;\n";
  text +=
      "  *) echo \"error: the sweep has no run '$SLURM_ARRAY_TASK_ID'\" >&2; exit 2 ;;\n"
      "esac\n"
      "srun --kill-on-bad-exit=0 " +
      shell_word(program.string()) +
      " \"${run[@]}\"\n"
      "code=$?\n"
      "if [[ $code == 75 && -z $terminated ]]; then\n"
      "  scontrol requeue \"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\"\n"
      "fi\n"
      "exit $code\n";
  return text;
}

}  // namespace titan::commands
