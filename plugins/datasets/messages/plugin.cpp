// Registers the dataset `messages`.
#include <titan/plugin.h>

#include "messages_dataset.h"

using titan::datasets::Form;
using titan::datasets::Learn;
using titan::datasets::MessagesDataset;
using titan::datasets::MessagesOptions;

TITAN_PLUGIN(plugin) {
  plugin
      .add<MessagesDataset>("messages",
                            "Conversations, prompts with completions and preferences from files "
                            "with one JSON object a line.")
      .option("learn", &MessagesOptions::learn,
              "Which of the assistant's messages are learned; one with \"weight\": 0 never is",
              {{"all", Learn::all}, {"last", Learn::last}})
      .option("form", &MessagesOptions::form,
              "What the lines hold; auto: by their members, which must then leave no choice",
              {{"auto", Form::automatic},
               {"messages", Form::messages},
               {"conversations", Form::conversations},
               {"completion", Form::completion},
               {"preference", Form::preference}})
      .option("index", &MessagesOptions::index,
              "Index plain files at the start, which allows any order of documents; switch off for "
              "very large files. Compressed files are never indexed")
      .option("skip_bad_lines", &MessagesOptions::skip_bad_lines,
              "Pass over lines that hold no conversation, with a warning, instead of stopping");
}
