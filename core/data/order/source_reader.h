// The documents that one row of the global batch reads of one source, epoch after epoch.
// source_access.h opens them. Used by the row reader.
#pragma once

#include <cstdint>
#include <string>

#include <titan/dataset.h>

namespace titan::core {

/// Thread: one at a time, except for place().
class SourceReader {
 public:
  virtual ~SourceReader() = default;

  /// False at the end of the row's share of the first epoch if the order ends there (`once`).
  virtual bool next(Document& document) = 0;
  /// The position before the next document, a few integers: `seek` to it on another reader of the
  /// same row continues exactly here. Throws a data Error for a position of another row or source.
  virtual Value position() const = 0;
  virtual void seek(const Value& position) = 0;
  /// The epoch, from 0, of the document that was returned last; 0 before the first one.
  virtual int64_t epoch() const = 0;
  /// [any thread] The document that is being read, for messages.
  virtual std::string place() const = 0;
};

}  // namespace titan::core
