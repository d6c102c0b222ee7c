#include "core/commands/command.h"

namespace titan::core {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"train",
       "titan train [--job.config_file FILE] [--dry-run] [--world-size N] [--section.key VALUE]...",
       "train a model", run_train},
      {"estimate",
       "titan estimate [--job.config_file FILE] [--ranks N] [--peak-flops X --bandwidth Y] "
       "[--json] "
       "[--section.key VALUE]...",
       "what a job would take: memory, operations, traffic", run_estimate},
      {"generate",
       "titan generate --checkpoint FOLDER [--prompt TEXT | --prompts FILE] [OPTION]...",
       "text from a model: a checkpoint's or a Hugging Face folder's", run_generate},
      {"evaluate", "titan evaluate --checkpoint FOLDER --tasks FILE|FOLDER... [OPTION]...",
       "score a model on tasks: choices, continuations, perplexity", run_evaluate},
      {"launch",
       "titan launch --nproc N [--nnodes K --node-rank R --master HOST:PORT] [OPTION]... -- "
       "train|generate ...",
       "start N ranks on this node and see them to their end", run_launch},
      {"tokenize", "titan tokenize --output PREFIX [OPTION]... [--section.key VALUE]...",
       "text into tokens on disk, once for many runs", run_tokenize},
      {"chat-template",
       "titan chat-template --assets FOLDER [--conversations FILE] [--generation-prompt] [--ids]",
       "the text and the tokens that a model reads of conversations", run_chat_template},
      {"download", "titan download tokenizer|dataset|model REPO [OPTION]...",
       "files of a Hugging Face repo, checked and resumable", run_download},
      {"convert", "titan convert DIRECTION IN OUT [OPTION]...",
       "weights of others in, a Hugging Face folder out", run_convert},
      {"inspect", "titan inspect CHECKPOINT [--verify] [--tensors] [--json]",
       "what a checkpoint holds, and whether it is damaged", run_inspect},
      {"flight", "titan flight FOLDER [--prefix TEXT] [--json]",
       "why a run stands still: who waits for whom, from what its ranks recorded", run_flight},
      {"compare", "titan compare RUN RUN [--tolerance X] [--json]",
       "where two runs part: configuration, data, losses, and the first layer", run_compare},
      {"bench",
       "titan bench [--job.config_file FILE] [--nproc N] [--steps N] [--against COMMAND] "
       "[OPTION]...",
       "how fast a job trains, or which of two is faster", run_bench},
      {"report", "titan report RUN... [--out FILE]",
       "what runs did, as one HTML file: curves, configuration, where the time went", run_report},
      {"top", "titan top RUN [--once]",
       "all ranks of a run while it trains: step, what each waits for, memory", run_top},
      {"trace", "titan trace FOLDER [--output FILE]",
       "the traces of all ranks in one file, for Perfetto", run_trace},
      {"list", "titan list [KIND] [--path FOLDER]...", "the plugins that are installed", run_list},
      {"describe", "titan describe KIND [NAME] [--json] [--path FOLDER]...",
       "the options of a component, with defaults and limits; of a pipeline schedule its timeline",
       run_describe},
      {"check", "titan check FILE [--timeout SECONDS]", "whether a plugin file can be used here",
       run_check},
      {"new-plugin", "titan new-plugin KIND OWNER/NAME [--directory FOLDER]",
       "a project for a plugin of your own", run_new_plugin},
  };
  return kCommands;
}

}  // namespace titan::core
