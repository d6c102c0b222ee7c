#include "tokenize_journal.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/files/file.h>

namespace titan::tokenising {
namespace {

Value to_value(const JournalEntry& entry) {
  return Value::map({{"documents", entry.next.documents},
                     {"shard", entry.next.shard},
                     {"in_shard", entry.next.in_shard},
                     {"tokens", entry.tokens},
                     {"text_bytes", entry.text_bytes},
                     {"is_complete", entry.is_complete}});
}

int64_t count(const Value& line, std::string_view name) {
  const Value& value = line.at(name);
  TITAN_CHECK(value.is_integer() && value.as_integer() >= 0, data, "'", name,
              "' must be a count, got ", to_json(value));
  return value.as_integer();
}

JournalEntry to_entry(const Value& line) {
  const Value& is_complete = line.at("is_complete");
  TITAN_CHECK(is_complete.is_boolean(), data, "'is_complete' must be true or false");
  return {.next = {.documents = count(line, "documents"),
                   .shard = count(line, "shard"),
                   .in_shard = line.at("in_shard")},
          .tokens = count(line, "tokens"),
          .text_bytes = count(line, "text_bytes"),
          .is_complete = is_complete.as_boolean()};
}

std::string shown(const Value* value) {
  if (!value) return "not set";
  return value->is_string() ? "'" + value->as_string() + "'" : to_json(*value);
}

}  // namespace

std::vector<std::string> differences(const Value& before, const Value& now) {
  std::vector<std::string> found;
  for (const auto& [name, value] : now.as_map())
    if (const Value* old = before.find(name); !old || *old != value)
      found.push_back("the " + name + " was " + shown(old) + ", now it is " + shown(&value));
  for (const auto& [name, value] : before.as_map())
    if (!now.find(name))
      found.push_back("the " + name + " was " + shown(&value) + ", now it is " + shown(nullptr));
  return found;
}

TokenizeJournal::TokenizeJournal(const std::filesystem::path& path) : file_(path) {
  TITAN_CHECK(file_.lock(), io, "another titan tokenize is writing this output: it holds ",
              path.string(), "; wait until it finishes, or choose another --output");
  TITAN_CHECK(file_.is_linked(), io, "another titan tokenize has just ended: ", path.string(),
              " is gone; start this one again");
}

void TokenizeJournal::load() {
  const std::string text = read_text(file_.path());
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;
    try {
      const Value line = parse_json(std::string_view(text).substr(begin, end - begin));
      if (number > 1) {
        last_ = to_entry(line);
      } else {
        TITAN_CHECK(line.is_map(), data, "expected an object");
        identity_ = line;
      }
    } catch (Error& e) {
      if (end + 1 == text.size() && number > 1) return;  // incomplete after a power failure
      e.with_context("in " + file_.path().string() + ", line " + std::to_string(number) +
                     "; start over with --overwrite");
      throw;
    }
    begin = end + 1;
    sure_bytes_ = static_cast<int64_t>(begin);
  }
}

void TokenizeJournal::begin(const Value& identity) {
  sure_bytes_ = 0;
  last_ = {};
  append_line(identity);
  sync_folder(file_.path().parent_path());
  identity_ = identity;
}

void TokenizeJournal::add(const JournalEntry& entry) {
  append_line(to_value(entry));
  last_ = entry;
}

void TokenizeJournal::append_line(const Value& line) {
  if (file_.size() != sure_bytes_) file_.truncate(sure_bytes_);  // the rest of an incomplete line
  file_.append(to_json(line) + "\n");
  file_.sync();
  sure_bytes_ = file_.size();
}

}  // namespace titan::tokenising
