#include "core/commands/training/train_help.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <titan/program/terminal.h>

#include "core/base/wrap_text.h"
#include "core/config/flag_help.h"

namespace titan::core {
namespace {

constexpr size_t kColumns = 100;

constexpr const char* kUsage =
    "usage: titan train [--job.config_file FILE] [--dry-run [--elsewhere]]\n"
    "                   [--section.key VALUE]...\n"
    "                   [--rank R --world-size N [--local-rank L] --master HOST:PORT]\n\n"
    "  --dry-run         check everything, print the resolved configuration, start nothing\n"
    "  --elsewhere       with --dry-run: the job will run on another machine; do not look for its\n"
    "                    files here\n"
    "  --world-size N    ranks of the run; with --dry-run: check for this many\n"
    "  --rank R          rank of this process, if no launcher sets it (titan launch, torchrun,\n"
    "                    srun and mpirun do); with comm.mode fake_backend: the simulated rank\n"
    "  --local-rank L    its number on this node (default 0)\n"
    "  --master H:P      rendezvous address: host of rank 0 and a free port there\n";

/// The keys that a first job sets, in the order of a file.
constexpr std::string_view kBeginnerKeys[] = {
    "--job.config_file",
    "--job.dump_folder",
    "--model.name",
    "--model.flavor",
    "--model.hf_assets_path",
    "--model.converters",
    "--optimizer.name",
    "--optimizer.lr",
    "--lr_scheduler.warmup_steps",
    "--training.dataset",
    "--training.dataset_path",
    "--training.steps",
    "--training.seq_len",
    "--training.local_batch_size",
    "--training.global_batch_size",
    "--training.mixed_precision_param",
    "--parallelism.data_parallel_shard_degree",
    "--parallelism.tensor_parallel_degree",
    "--parallelism.pipeline_parallel_degree",
    "--activation_checkpoint.mode",
    "--checkpoint.enable",
    "--checkpoint.interval",
    "--checkpoint.initial_load_path",
    "--validation.enable",
    "--metrics.enable_tensorboard",
    "--debug.seed",
};

/// Breaks lines between words; every line begins with `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string result;
  for (const std::string& line : wrap_text(text, kColumns - indent.size()))
    result += indent + line + "\n";
  return result;
}

/// "--checkpoint.[no_]enable"
std::string shown(const FlagHelp& flag) {
  std::string name = flag.flag;
  if (!flag.negative_flag.empty()) name.insert(name.rfind('.') + 1, "[no_]");
  return name;
}

std::string text_of(const FlagHelp& flag) {
  return "  " + shown(flag) + "\n" +
         wrapped(flag.help + " (" + flag.allowed + "; default " + flag.default_value + ")",
                 "      ");
}

}  // namespace

void print_train_help(const JobSources& sources, ComponentLookup& lookup, bool lists_all) {
  print(kUsage);
  const std::vector<FlagHelp> flags = list_flags(sources, lookup);
  if (!lists_all) {
    print("\nKeys of a first job:\n");
    for (const std::string_view key : kBeginnerKeys)
      for (const FlagHelp& flag : flags)
        if (flag.flag == key) print(text_of(flag));
    print("\nAll keys: titan train --help all. Keys of a section: titan describe training\n");
    return;
  }
  std::string section;
  for (const FlagHelp& flag : flags) {
    if (flag.section != section) print("\n[" + flag.section + "]\n");
    section = flag.section;
    print(text_of(flag));
  }
}

}  // namespace titan::core
