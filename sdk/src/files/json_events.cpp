#include "files/json_events.h"

#include <titan/error.h>
#include <titan/files/json_string.h>

namespace titan {

void JsonEvents::read(std::string_view text) {
  // the parser accepts two things that are refused here: it ends at a zero byte and skips a byte
  // order mark
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    refuse("there is a zero byte at byte " + std::to_string(zero) + " of the JSON" +
           utf16_hint(text));
  if (!text.empty() && text.front() == '\xEF') refuse("it starts with a byte order mark");
  nlohmann::json::sax_parse(text.begin(), text.end(), this);
}

bool JsonEvents::number_integer(number_integer_t number) {
  unexpected("the negative number " + (number == 0 ? "-0" : std::to_string(number)));
}

bool JsonEvents::number_float(number_float_t, const string_t& text) {
  unexpected("the number " + printable(text) + ", which is not an integer of 64 bits,");
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
  const std::string place = field();
  refuse((place.empty() ? "" : place + ": ") + found + " is not allowed here");
}

void JsonEvents::refuse_large(number_unsigned_t number) const {
  const std::string place = field();
  refuse((place.empty() ? "" : place + ": ") + "the number " + std::to_string(number) +
         " is beyond 64 bits with sign");
}

}  // namespace titan
