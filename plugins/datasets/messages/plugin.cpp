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
      .option(
          "learn", &MessagesOptions::learn,
          "The assistant's messages that contribute to the loss; one with \"weight\": 0 never does",
          {{"all", Learn::all}, {"last", Learn::last}})
      .option("form", &MessagesOptions::form,
              "Form of the lines; auto: by their members, which must be unambiguous",
              {{"auto", Form::automatic},
               {"messages", Form::messages},
               {"conversations", Form::conversations},
               {"completion", Form::completion},
               {"preference", Form::preference}})
      .option("index", &MessagesOptions::index,
              "Index plain files at the start, which allows any order of documents; switch off for "
              "very large files. Compressed files are never indexed")
      .option("skip_bad_lines", &MessagesOptions::skip_bad_lines,
              "Skip lines without a valid conversation, with a warning, instead of stopping");
}
