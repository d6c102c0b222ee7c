// What users of the dataset `messages` choose.
#pragma once

namespace titan::datasets {

/// Which answers of a chat are learned.
enum class Learn {
  all,   ///< every message of the assistant
  last,  ///< the last one
};

/// How a line says what it holds; see message_line.h.
enum class Form { automatic, messages, conversations, completion, preference };

struct MessagesOptions {
  Learn learn = Learn::all;
  Form form = Form::automatic;
  bool index = true;            ///< index the lines of plain files at the start
  bool skip_bad_lines = false;  ///< pass over what is no conversation, instead of failing
};

}  // namespace titan::datasets
