#include "core/checkpoint/format/json_events.h"

#include <titan/error.h>

#include "core/checkpoint/format/shown_text.h"

namespace titan::core {

void JsonEvents::read(std::string_view text) {
  // two things that the parser lets pass: it ends at a zero byte and skips a byte order mark
  if (text.find('\0') != std::string_view::npos) refuse("it holds a zero byte");
  if (!text.empty() && text.front() == '\xEF') refuse("it starts with a byte order mark");
  nlohmann::json::sax_parse(text.begin(), text.end(), this);
}

bool JsonEvents::parse_error(std::size_t, const std::string&,
                             const nlohmann::detail::exception& e) {
  std::string_view what = e.what();
  if (const size_t end = what.find("] "); what.starts_with('[') && end != std::string_view::npos)
    what.remove_prefix(end + 2);
  refuse("malformed JSON: " + printable(what));
}

void JsonEvents::refuse(const std::string& what) const {
  const std::string about = subject();
  fail(ErrorKind::data, "cannot read ", place_, ": ", about, about.empty() ? "" : ": ", what);
}

void JsonEvents::unexpected(const std::string& found) const {
  refuse(found + " stands where the format allows none");
}

}  // namespace titan::core
