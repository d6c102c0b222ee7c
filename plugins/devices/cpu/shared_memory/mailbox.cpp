#include "mailbox.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace titan::cpu {

void Mailbox::expect(std::shared_ptr<Operation> operation) {
  Expected& expected = *operation->expected;
  const auto is_coming = [&](const SetAside& message) {
    return has_current_ && !target_ && &message == &set_aside_.back();
  };
  const auto found =
      std::find_if(set_aside_.begin(), set_aside_.end(),
                   [&](const SetAside& message) { return message.header.tag == expected.tag; });
  if (found == set_aside_.end()) {
    waiting_.push_back(std::move(operation));
    return;
  }
  check_size(found->header, expected);
  const uint64_t here = is_coming(*found) ? done_ : expected.bytes;
  std::memcpy(expected.place, found->bytes.data(), here);
  if (is_coming(*found)) {  // the rest is written to its place directly
    target_ = &expected;
    waiting_.push_front(std::move(operation));
  } else {
    expected.is_done = true;
  }
  set_aside_.erase(found);
}

Expected* Mailbox::first_with(int64_t tag) {
  for (const auto& operation : waiting_)
    if (operation->expected->tag == tag) return &*operation->expected;
  return nullptr;
}

void Mailbox::check_size(const MessageHeader& header, const Expected& expected) const {
  if (header.bytes != expected.bytes)
    throw std::runtime_error("rank " + std::to_string(channel_.rank) + " of the group sent " +
                             std::to_string(header.bytes) + " bytes where " +
                             std::to_string(expected.bytes) + " were expected");
}

bool Mailbox::begin() {
  const std::span<const std::byte> available = channel_.ring.available();
  if (available.empty()) return false;
  std::memcpy(&header_, available.data(), sizeof header_);
  target_ = first_with(header_.tag);
  if (target_)
    check_size(header_, *target_);
  else
    set_aside_.push_back({header_, std::vector<std::byte>(header_.bytes)});
  channel_.ring.release(kLine);
  has_current_ = true;
  done_ = 0;
  return true;
}

bool Mailbox::advance() {
  if (waiting_.empty()) return false;
  bool moved = false;
  if (!has_current_) {
    if (!begin()) return false;
    moved = true;
  }
  const std::span<const std::byte> available = channel_.ring.available();
  const uint64_t count = std::min({available.size(), header_.bytes - done_, kPiece});
  if (count > 0) {
    std::byte* place = target_ ? target_->place : set_aside_.back().bytes.data();
    std::memcpy(place + done_, available.data(), count);
    done_ += count;
    channel_.ring.release((count + kLine - 1) / kLine * kLine);
    moved = true;
  }
  if (moved) channel_.futex->wake();
  if (done_ == header_.bytes) {
    has_current_ = false;
    if (target_) complete(*target_);
    target_ = nullptr;
  }
  return moved;
}

void Mailbox::complete(Expected& expected) {
  expected.is_done = true;
  waiting_.remove_if([&](const auto& operation) { return &*operation->expected == &expected; });
}

bool Mailbox::is_waiting() {
  return !waiting_.empty() && channel_.ring.available().empty();
}

bool Mailbox::is_short_of_space() const {
  uint64_t unread = 0;
  for (const auto& operation : waiting_) {
    const Expected& expected = *operation->expected;
    unread += &expected == target_ ? whole_lines(expected.bytes - done_)
                                   : kLine + whole_lines(expected.bytes);
  }
  return unread > channel_.ring.capacity();
}

void Mailbox::clear() {
  waiting_.clear();
  has_current_ = false;
  target_ = nullptr;
}

}  // namespace titan::cpu
