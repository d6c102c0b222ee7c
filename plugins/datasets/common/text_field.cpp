// See text_field.h.
#include "plugins/datasets/common/text_field.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "plugins/datasets/common/json_scanner.h"

namespace titan::datasets {
namespace {

/// A few bytes of `line` around `column` (from 1), without incomplete characters at the ends.
std::string excerpt(std::string_view line, size_t column) {
  constexpr size_t kBefore = 24, kLength = 48;
  const size_t at = std::min(column, line.size());
  size_t begin = at > kBefore ? at - kBefore : 0;
  const auto is_tail = [&](size_t i) {
    return (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;
  };
  for (int i = 0; i < 3 && begin > 0 && is_tail(begin); ++i) --begin;
  return (begin > 0 ? "..." : "") + printable(line.substr(begin), kLength);
}

/// The parser's message without its name, position and token, which may be megabytes long.
std::string reason(std::string_view message) {
  if (const size_t end = message.find("] "); end != message.npos) message.remove_prefix(end + 2);
  if (message.starts_with("parse error"))
    if (const size_t end = message.find(": "); end != message.npos) message.remove_prefix(end + 2);
  const size_t token = message.find("; last read: ");
  std::string text(message.substr(0, token));
  if (const size_t expected = message.rfind("; expected ");
      expected != message.npos && token < expected)
    text += message.substr(expected);
  return text;
}

/// The length of the JSON number at the start of `text`; 0: none.
size_t number_length(std::string_view text) {
  size_t at = 0;
  const auto take = [&](std::string_view any) {
    const bool is_there = at < text.size() && any.find(text[at]) != any.npos;
    at += is_there ? 1 : 0;
    return is_there;
  };
  const auto digits = [&] {
    const size_t begin = at;
    while (take("0123456789")) {
    }
    return at > begin;
  };
  take("-");
  if (!take("0") && !digits()) return 0;
  if (take(".") && !digits()) return 0;
  if (take("eE")) {
    take("+-");
    if (!digits()) return 0;
  }
  return at;
}

/// The line with every long number and every number with an exponent replaced by 0 and spaces: the
/// parser rejects numbers beyond double, even in fields that are not read.
std::string with_plain_numbers(std::string_view line) {
  constexpr size_t kPlain = 100;  // a double holds that many digits without an exponent
  std::string plain(line);
  for (size_t at = 0; at < plain.size(); ++at) {
    if (plain[at] == '"') {
      for (++at; at < plain.size() && plain[at] != '"'; ++at)
        if (plain[at] == '\\') ++at;
    } else if (const size_t length = number_length(std::string_view(plain).substr(at))) {
      const std::string_view number = std::string_view(plain).substr(at, length);
      const size_t sign = number.starts_with('-') ? 1 : 0;
      if (length > kPlain || number.find_first_of("eE") != number.npos)
        plain.replace(at + sign, length - sign, "0" + std::string(length - sign - 1, ' '));
      at += length - 1;
    }
  }
  return plain;
}

/// Picks one member from the parser's events, so that nothing else of the line is stored.
class MemberFinder {
 public:
  MemberFinder(std::string_view line, const std::string& field) : line_(line), field_(field) {}

  std::string take() {
    if (!root_type_.empty()) fail(ErrorKind::data, "the line is ", root_type_, ", not an object");
    if (!wrong_type_.empty())
      fail(ErrorKind::data, "field ", in_quotes(field_), " is ", wrong_type_, ", not a string");
    if (!is_found_) fail_missing();
    return std::move(text_);
  }

  bool null() { return value("null"); }
  bool boolean(bool) { return value("a boolean"); }
  bool number_integer(int64_t) { return value("a number"); }
  bool number_unsigned(uint64_t) { return value("a number"); }
  bool number_float(double, const std::string&) { return value("a number"); }
  bool binary(nlohmann::json::binary_t&) { return value("binary"); }
  bool string(std::string& text) {
    if (depth_ != 1 || !is_wanted_) return value("a string");
    is_wanted_ = false;
    is_found_ = true;
    wrong_type_.clear();  // of a repeated member the last one counts
    text_ = std::move(text);
    return true;
  }
  bool start_object(size_t) {
    if (depth_ > 0 && !value("an object")) return false;
    ++depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ != 1) return true;
    is_wanted_ = name == field_;
    if (names_.size() < kMaxNames) names_.push_back(std::move(name));
    return true;
  }
  bool end_object() { return --depth_, true; }
  bool start_array(size_t) {
    if (!value("a list")) return false;
    ++depth_;
    return true;
  }
  bool end_array() { return --depth_, true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "malformed JSON at column ", position, ": ", reason(error.what()),
         "; near: ", excerpt(line_, position));
  }

 private:
  static constexpr size_t kMaxNames = 8;

  bool value(const char* type) {
    if (depth_ == 0) root_type_ = type;
    if (depth_ == 1 && is_wanted_) {
      is_wanted_ = false;
      is_found_ = true;
      wrong_type_ = type;
    }
    return depth_ > 0;
  }
  [[noreturn]] void fail_missing() const {
    std::string names;
    for (const std::string& name : names_)
      names += (names.empty() ? "" : ", ") + in_quotes(name, 48);
    fail(ErrorKind::data, "field ", in_quotes(field_), " is missing; the object has ",
         names.empty() ? "no fields" : names,
         "; option 'field' of dataset 'jsonl' names the one to read");
  }

  std::string_view line_;
  const std::string& field_;
  int64_t depth_ = 0;
  bool is_wanted_ = false;  // the next value at depth 1 is the field's
  bool is_found_ = false;
  std::string text_;
  std::string wrong_type_;
  std::string root_type_;
  std::vector<std::string> names_;
};

}  // namespace

void read_text_field_slowly(std::string_view line, const std::string& field, std::string& text) {
  if (const std::string encoding = utf16_hint(line); !encoding.empty())
    fail(ErrorKind::data, "the line is not UTF-8", encoding);
  // the parser would treat a NUL as the end of the line
  if (const size_t nul = line.find('\0'); nul != line.npos)
    fail(ErrorKind::data, "a NUL byte at column ", nul + 1, "; near: ", excerpt(line, nul));
  line = line.substr(0, line.find_last_not_of(" \t\r\n") + 1);
  MemberFinder finder(line, field);
  const std::string plain = with_plain_numbers(line);
  nlohmann::json::sax_parse(plain.begin(), plain.end(), &finder);
  text = finder.take();
}

void read_text_field(std::string_view line, const std::string& field, std::string& text) {
  if (!scan_text_field(line, field, text)) read_text_field_slowly(line, field, text);
}

}  // namespace titan::datasets
