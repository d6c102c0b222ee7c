// Dataset `messages`: conversations, one JSON object per line.
#pragma once

#include <string>
#include <string_view>

#include <titan/dataset.h>

#include "plugins/datasets/common/json_lines.h"
#include "plugins/datasets/messages/message_line.h"
#include "plugins/datasets/messages/messages_options.h"

namespace titan::datasets {

/// The files of [training] dataset_path, found and read as those of the dataset `jsonl`.
class MessagesDataset final : public JsonLines {
 public:
  MessagesDataset(const MessagesOptions& options, DatasetContext context)
      : JsonLines({.parse = [options](std::string_view line,
                                      Document& document) { read_line(line, options, document); },
                   .description = "messages " + std::to_string(static_cast<int>(options.learn)) +
                                  " " + std::to_string(static_cast<int>(options.form)),
                   .skips_bad_lines = options.skip_bad_lines},
                  options.index, context.path,
                  find_source_files(context.path, json_lines_suffixes())) {}
};

}  // namespace titan::datasets
