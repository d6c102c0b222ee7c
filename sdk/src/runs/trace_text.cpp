#include <titan/runs/trace_text.h>

#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/gzip.h>
#include <titan/shown_text.h>

namespace titan {
namespace {

/// Scans JSON without building values.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t place() const { return place_; }

  char skip_blanks() {
    while (place_ < text_.size() && std::string_view(" \t\r\n").find(text_[place_]) != text_.npos)
      ++place_;
    if (place_ == text_.size()) refuse("ends too early");
    return text_[place_];
  }
  void take(char expected) {
    if (skip_blanks() != expected) refuse("has no '" + std::string(1, expected) + "'");
    ++place_;
  }
  bool take_if(char wanted) {
    const bool is_there = skip_blanks() == wanted;
    place_ += is_there;
    return is_there;
  }
  /// The string without its quotes, escapes unchanged.
  std::string_view string() {
    take('"');
    const size_t begin = place_;
    while (place_ < text_.size() && text_[place_] != '"') place_ += text_[place_] == '\\' ? 2 : 1;
    if (place_ >= text_.size()) refuse("ends in a string");
    return text_.substr(begin, place_++ - begin);
  }
  std::string_view value() {
    const char first = skip_blanks();
    const size_t begin = place_;
    if (first == '"') {
      string();
    } else if (first == '{' || first == '[') {
      nested();
    } else {
      place_ = text_.find_first_of(",]} \t\r\n", place_);
      if (place_ == text_.npos || place_ == begin) refuse("has no value");
    }
    return text_.substr(begin, place_ - begin);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::data, "the trace ", what, " at byte ", place_);
  }

 private:
  void nested() {
    for (int depth = 0;;) {
      place_ = text_.find_first_of("\"[]{}", place_);
      if (place_ == text_.npos) {
        place_ = text_.size();
        refuse("ends inside of brackets");
      }
      const char found = text_[place_];
      if (found == '"') {
        string();
        continue;
      }
      ++place_;
      depth += found == '{' || found == '[' ? 1 : -1;
      if (depth == 0) return;
    }
  }

  std::string_view text_;
  size_t place_ = 0;
};

}  // namespace

TraceParts split_trace(std::string_view text) {
  TraceParts parts;
  Scanner scanner(text);
  scanner.take('{');
  while (true) {
    if (scanner.skip_blanks() == '}') scanner.refuse("has no \"traceEvents\"");
    const std::string_view name = scanner.string();
    scanner.take(':');
    if (name == "traceEvents") break;
    scanner.value();
    scanner.take_if(',');
  }
  scanner.take('[');
  parts.before = text.substr(0, scanner.place());
  while (scanner.skip_blanks() != ']') {
    if (scanner.skip_blanks() != '{') scanner.refuse("has an event that is not an object");
    parts.events.push_back(scanner.value());
    scanner.take_if(',');
  }
  parts.after = text.substr(scanner.place());
  return parts;
}

Value trace_properties(const TraceParts& parts) {
  Value all = parse_json(std::string(parts.before) + std::string(parts.after));
  std::erase_if(all.as_map(), [](const Value::Member& m) { return m.first == "traceEvents"; });
  return all;
}

std::string_view member_text(std::string_view event, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\"";
  const size_t found = event.find(key);
  if (found == event.npos) return {};
  Scanner scanner(event.substr(found + key.size()));
  scanner.take(':');
  std::string_view text = scanner.value();
  if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
  return text;
}

std::string with_events(const TraceParts& parts, const std::vector<std::string>& more) {
  std::string text(parts.before);
  bool is_first = true;
  const auto add = [&](std::string_view event) {
    text += std::exchange(is_first, false) ? "\n  " : ",\n  ";
    text += event;
  };
  for (const std::string_view event : parts.events) add(event);
  for (const std::string& event : more) add(event);
  return text.append("\n  ").append(parts.after);
}

std::string read_trace(const std::filesystem::path& path) {
  std::string bytes = read_text(path);
  if (!is_gzip(bytes)) return bytes;
  try {
    return from_gzip(bytes);
  } catch (Error& error) {
    error.with_context("in " + in_quotes(path.string()));
    throw;
  }
}

void write_trace(const std::filesystem::path& path, std::string_view text) {
  if (path.extension() == ".gz")
    write_text_atomically(path, to_gzip(text));
  else
    write_text_atomically(path, text);
}

}  // namespace titan
