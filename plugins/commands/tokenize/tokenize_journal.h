// How far the tokenising of a data set has come, such that it can go on after a kill at any
// instant: a text file of JSON lines, first what is tokenised and how, then the places up to which
// the output is on disk. Used by tokenization.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/files/growing_file.h>
#include <titan/value.h>

#include "document_blocks.h"

namespace titan::tokenising {

/// Up to `next` everything is in the output files: `tokens` in .bin.part, a size for each document
/// in .sizes.part.
struct JournalEntry {
  SourcePosition next;
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  bool is_complete = false;  ///< all documents; what is left is to give the files their names
};

/// What differs between two maps, as "the tokenizer was A, now it is B"; empty when they are equal.
std::vector<std::string> differences(const Value& before, const Value& now);

class TokenizeJournal {
 public:
  /// Opens the journal, or makes an empty one, and keeps other processes out. Throws an io Error
  /// when another process holds it.
  explicit TokenizeJournal(const std::filesystem::path& path);
  /// Reads what is there. Throws a data Error when a line cannot be read; a last line that was cut
  /// by a kill does not count.
  void load();

  /// What the journal was begun for; absent in a new one.
  const std::optional<Value>& identity() const { return identity_; }
  /// The last sure place; the beginning when there is none yet.
  const JournalEntry& last() const { return last_; }
  /// Forgets what is there. Durable when it returns.
  void begin(const Value& identity);
  /// The output files are synced before. Durable when it returns.
  void add(const JournalEntry& entry);

 private:
  void append_line(const Value& line);

  GrowingFile file_;
  std::optional<Value> identity_;
  JournalEntry last_;
  int64_t sure_bytes_ = 0;  // whole lines
};

}  // namespace titan::tokenising
