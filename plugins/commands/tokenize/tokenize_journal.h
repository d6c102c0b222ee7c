// Journal of a tokenization, from which it resumes after a kill at any moment. A text file of JSON
// lines: first the identity of the request, then positions up to which the output is on disk. Used
// by tokenization.cpp.
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

/// Everything before `next` is in the output files: `tokens` in .bin.part, a size per document in
/// .sizes.part.
struct JournalEntry {
  SourcePosition next;
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  bool is_complete = false;  ///< all documents; only the files' final names are missing
};

/// Differences between two maps, as "the tokenizer was A, now it is B"; empty when they are equal.
std::vector<std::string> differences(const Value& before, const Value& now);

class TokenizeJournal {
 public:
  /// Opens or creates the journal and locks it against other processes. Throws an io Error when
  /// another process has locked it.
  explicit TokenizeJournal(const std::filesystem::path& path);
  /// Reads the entries. Throws a data Error for an unreadable line; an incomplete last line is
  /// ignored.
  void load();

  /// The request that the journal was begun for; absent in a new one.
  const std::optional<Value>& identity() const { return identity_; }
  /// The last durable position; the beginning when there is none yet.
  const JournalEntry& last() const { return last_; }
  /// Discards all entries. Durable when it returns.
  void begin(const Value& identity);
  /// The caller has synced the output files. Durable when it returns.
  void add(const JournalEntry& entry);

 private:
  void append_line(const Value& line);

  GrowingFile file_;
  std::optional<Value> identity_;
  JournalEntry last_;
  int64_t sure_bytes_ = 0;  // of complete lines
};

}  // namespace titan::tokenising
