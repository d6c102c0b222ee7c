// What `titan` does itself needs neither torch nor a plugin that is loaded, so that it answers at
// once; the rest is handed over.
#include "core/commands/command.h"

namespace titan::core {
namespace {

constexpr const char* kTraining = "titan-train";  // loads plugins, and torch
constexpr const char* kModels = "titan-models";
constexpr const char* kRuns = "titan-runs";

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"train",
       "titan train [--job.config_file FILE] [--dry-run] [--world-size N] [--section.key VALUE]...",
       "train a model", nullptr, kTraining},
      {"estimate",
       "titan estimate [--job.config_file FILE] [--ranks N] [--peak-flops X --bandwidth Y] "
       "[--json] "
       "[--section.key VALUE]...",
       "what a job would take: memory, operations, traffic", nullptr, kTraining},
      {"generate",
       "titan generate --checkpoint FOLDER [--prompt TEXT | --prompts FILE] [OPTION]...",
       "text from a model: a checkpoint's or a Hugging Face folder's", nullptr, kModels},
      {"evaluate", "titan evaluate --checkpoint FOLDER --tasks FILE|FOLDER... [OPTION]...",
       "score a model on tasks: choices, continuations, perplexity", nullptr, kModels},
      {"launch",
       "titan launch --nproc N [--nnodes K --node-rank R --master HOST:PORT] [OPTION]... -- "
       "train|generate ...",
       "start N ranks on this node and see them to their end", run_launch},
      {"tokenize", "titan tokenize --output PREFIX [OPTION]... [--section.key VALUE]...",
       "text into tokens on disk, once for many runs", nullptr, kTraining},
      {"chat-template",
       "titan chat-template --assets FOLDER [--conversations FILE] [--generation-prompt] [--ids]",
       "the text and the tokens that a model reads of conversations", nullptr, kTraining},
      {"download", "titan download tokenizer|dataset|model REPO [OPTION]...",
       "files of a Hugging Face repo, checked and resumable", run_download},
      {"convert", "titan convert DIRECTION IN OUT [OPTION]...",
       "weights of others in, a Hugging Face folder out", nullptr, kModels},
      {"inspect", "titan inspect CHECKPOINT [--verify] [--tensors] [--json]",
       "what a checkpoint holds, and whether it is damaged", run_inspect},
      {"flight", "titan flight FOLDER [--prefix TEXT] [--json]",
       "why a run stands still: who waits for whom, from what its ranks recorded", nullptr, kRuns},
      {"compare", "titan compare RUN RUN [--tolerance X] [--json]",
       "where two runs part: configuration, data, losses, and the first layer", nullptr, kRuns},
      {"bench",
       "titan bench [--job.config_file FILE] [--nproc N] [--steps N] [--against COMMAND] "
       "[OPTION]...",
       "how fast a job trains, or which of two is faster", nullptr, kRuns},
      {"report", "titan report RUN... [--out FILE]",
       "what runs did, as one HTML file: curves, configuration, where the time went", nullptr,
       kRuns},
      {"top", "titan top RUN [--once]",
       "all ranks of a run while it trains: step, what each waits for, memory", nullptr, kRuns},
      {"trace", "titan trace FOLDER [--output FILE]",
       "the traces of all ranks in one file, for Perfetto", nullptr, kRuns},
      {"list", "titan list [KIND] [--path FOLDER]...", "the plugins that are installed", run_list},
      {"describe", "titan describe KIND [NAME] [--json] [--path FOLDER]...",
       "the options of a component, with defaults and limits; of a pipeline schedule its timeline",
       nullptr, kTraining},
      {"check", "titan check FILE [--timeout SECONDS]", "whether a plugin file can be used here",
       nullptr, kTraining},
      {"new-plugin", "titan new-plugin KIND OWNER/NAME [--directory FOLDER]",
       "a project for a plugin of your own", run_new_plugin},
  };
  return kCommands;
}

}  // namespace titan::core
