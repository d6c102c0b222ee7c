// The lines of JSON between a training process and titan-replica.
//
// To titan-replica: {"alive": true}, {"ask": MEMBER}. From it: {"quorum": QUORUM}, {"note": TEXT},
// {"failure": TEXT}: the open request has failed and the agent ends.
#pragma once

#include <string>
#include <string_view>

#include "membership.h"

namespace titan::replicas {

Value to_value(const Member& member);
Member member_of(const Value& value);
Value to_value(const Quorum& quorum);
Quorum quorum_of(const Value& value);

/// Collects bytes and hands out whole lines.
class LineBuffer {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The next line without its end; false if none is complete.
  bool next(std::string& line);

 private:
  std::string bytes_;
};

/// Writes `text` to a socket or pipe, completely. False when the reader is gone.
bool write_all(int descriptor, std::string_view text);

}  // namespace titan::replicas
