// The messages of one other rank, which are asked for by their tags in any order.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "operation.h"

namespace titan::cpu {

/// A message stays in the ring until somebody waits for one of this rank. When that is another one,
/// those before it are set aside, so that nobody waits in a circle.
class Mailbox {
 public:
  explicit Mailbox(ReceiveLane lane) : lane_(lane) {}

  /// `operation.expected` is to be filled; shared, because it may be dropped by who waits.
  void expect(std::shared_ptr<Operation> operation);
  /// Throws a std::runtime_error when a message is not of the size that is waited for.
  bool advance();
  /// An operation waits for more of its rank; asked when nothing moves.
  bool is_waiting();
  /// The messages that are waited for do not fit into the ring together.
  bool is_short_of_space() const;
  void clear();

 private:
  /// Came before it was asked for.
  struct SetAside {
    MessageHeader header;
    std::vector<std::byte> bytes;
  };

  bool begin();
  Expected* first_with(int64_t tag);
  void complete(Expected& expected);
  void check_size(const MessageHeader& header, const Expected& expected) const;

  ReceiveLane lane_;
  std::list<std::shared_ptr<Operation>> waiting_;  // in the order in which they were asked for
  std::list<SetAside> set_aside_;                  // the last may still be coming
  // the message whose bytes come now:
  bool has_current_ = false;
  MessageHeader header_{};
  uint64_t done_ = 0;
  Expected* target_ = nullptr;  // null: it is set aside
};

}  // namespace titan::cpu
