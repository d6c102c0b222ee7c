// Receives the messages of one other rank, which may be requested by tag in any order. Used by
// Engine.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "operation.h"

namespace titan::cpu {

/// A message stays in the ring until this rank waits for a message of the same sender. Messages
/// before the requested one are set aside, to avoid deadlock.
class Mailbox {
 public:
  explicit Mailbox(ReceiveChannel channel) : channel_(channel) {}

  /// Fills `operation.expected`. Shared ownership, because the waiting thread may drop the
  /// operation.
  void expect(std::shared_ptr<Operation> operation);
  /// Throws a std::runtime_error when a message does not have the expected size.
  bool advance();
  /// An operation waits for more data of this sender; called when nothing moves.
  bool is_waiting();
  /// The expected messages do not fit into the ring together.
  bool is_short_of_space() const;
  void clear();

 private:
  /// A message that came before it was requested.
  struct SetAside {
    MessageHeader header;
    std::vector<std::byte> bytes;
  };

  bool begin();
  Expected* first_with(int64_t tag);
  void complete(Expected& expected);
  void check_size(const MessageHeader& header, const Expected& expected) const;

  ReceiveChannel channel_;
  std::list<std::shared_ptr<Operation>> waiting_;  // in the order of the requests
  std::list<SetAside> set_aside_;                  // the last may be incomplete
  // the message that is being received:
  bool has_current_ = false;
  MessageHeader header_{};
  uint64_t done_ = 0;
  Expected* target_ = nullptr;  // null: the message is set aside
};

}  // namespace titan::cpu
