// Options of the dataset `messages`.
#pragma once

namespace titan::datasets {

/// The assistant's messages that contribute to the loss.
enum class Learn {
  all,   ///< all messages of the assistant
  last,  ///< the last one
};

/// The form of a line; see message_line.h.
enum class Form { automatic, messages, conversations, completion, preference };

struct MessagesOptions {
  Learn learn = Learn::all;
  Form form = Form::automatic;
  bool index = true;            ///< index the lines of plain files at the start
  bool skip_bad_lines = false;  ///< skip lines that are not conversations, instead of failing
};

}  // namespace titan::datasets
