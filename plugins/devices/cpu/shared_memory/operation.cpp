#include "operation.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>

namespace titan::cpu {
namespace {

/// At most `most` of the `remaining` bytes, in whole lines unless the rest fits.
uint64_t piece(uint64_t remaining, uint64_t most) {
  return remaining <= most ? remaining : most / kLine * kLine;
}

}  // namespace

uint64_t ReceiveChannel::expect(uint64_t bytes) {
  std::atomic_ref(unread).fetch_add(kLine + whole_lines(bytes), std::memory_order_relaxed);
  return next_turn++;
}

void ReceiveChannel::release(uint64_t bytes) {
  ring.release(bytes);
  std::atomic_ref(unread).fetch_sub(bytes, std::memory_order_relaxed);
}

bool ReceiveChannel::is_short_of_space() const {
  return std::atomic_ref(unread).load(std::memory_order_relaxed) > ring.capacity();
}

SendMessage::SendMessage(SendChannel& channel, const void* data, uint64_t bytes, int64_t tag,
                         const uint64_t* ready)
    : channel_(&channel),
      data_(static_cast<const std::byte*>(data)),
      bytes_(bytes),
      turn_(channel.next_turn++),
      tag_(tag),
      ready_(ready) {}

bool SendMessage::advance() {
  if (is_done_ || channel_->turn != turn_) return false;
  bool moved = false;
  if (!header_sent_) {
    const std::span<std::byte> space = channel_->ring.space();
    if (space.empty()) return false;
    new (space.data()) MessageHeader{.bytes = bytes_, .tag = tag_};
    channel_->ring.commit(kLine);
    header_sent_ = moved = true;
  }
  const uint64_t ready = ready_ ? *ready_ : bytes_;
  if (sent_ < ready) {
    const std::span<std::byte> space = channel_->ring.space();
    const uint64_t most = std::min({space.size(), ready - sent_, kPiece});
    const uint64_t count = piece(bytes_ - sent_, most);
    if (count > 0) {
      std::memcpy(space.data(), data_ + sent_, count);
      channel_->ring.commit(whole_lines(count));
      sent_ += count;
      moved = true;
    }
  }
  if (moved) channel_->wake_readers();
  if (sent_ == bytes_) {
    is_done_ = true;
    ++channel_->turn;
  }
  return moved;
}

bool SendMessage::waits_for(int rank) const {
  if (is_done_ || channel_->turn != turn_) return false;
  const auto found = std::find(channel_->ranks.begin(), channel_->ranks.end(), rank);
  return found != channel_->ranks.end() &&
         channel_->ring.waits_for_reader(static_cast<size_t>(found - channel_->ranks.begin()));
}

bool take_header(ReceiveChannel& channel, uint64_t expected_bytes) {
  const std::span<const std::byte> available = channel.ring.available();
  if (available.empty()) return false;
  MessageHeader header;
  std::memcpy(&header, available.data(), sizeof header);
  if (header.bytes != expected_bytes)
    throw std::runtime_error("rank " + std::to_string(channel.rank) + " of the group sent " +
                             std::to_string(header.bytes) + " bytes where " +
                             std::to_string(expected_bytes) + " were expected");
  channel.release(kLine);
  return true;
}

ReceiveMessage::ReceiveMessage(ReceiveChannel& channel, void* place, uint64_t bytes)
    : channel_(&channel),
      place_(static_cast<std::byte*>(place)),
      bytes_(bytes),
      turn_(channel.expect(bytes)) {}

bool ReceiveMessage::advance() {
  if (is_done_ || channel_->turn != turn_) return false;
  bool moved = false;
  if (!header_seen_) {
    if (!take_header(*channel_, bytes_)) return false;
    header_seen_ = moved = true;
  }
  const std::span<const std::byte> available = channel_->ring.available();
  const uint64_t count = std::min({available.size(), bytes_ - done_, kPiece});
  if (count > 0) {
    std::memcpy(place_ + done_, available.data(), count);
    done_ += count;
    channel_->release(whole_lines(count));
    moved = true;
  }
  if (moved) channel_->futex->wake();
  if (done_ == bytes_) {
    is_done_ = true;
    ++channel_->turn;
  }
  return moved;
}

bool ReceiveMessage::waits_for(int rank) const {
  return !is_done_ && channel_->rank == rank && channel_->turn == turn_ &&
         channel_->ring.available().empty();
}

FanInReduce::FanInReduce(const std::vector<ReceiveChannel*>& channels, int size, uint64_t bytes,
                         Use use, const uint64_t* limit)
    : sources_(static_cast<size_t>(size), nullptr),
      bytes_(bytes),
      use_(std::move(use)),
      limit_(limit) {
  for (ReceiveChannel* channel : channels) parts_.push_back({channel, channel->expect(bytes)});
}

bool FanInReduce::advance() {
  if (is_done_) return false;
  bool moved = false, all_begun = true;
  for (Part& part : parts_) {
    if (!part.header_seen && part.channel->turn == part.turn && take_header(*part.channel, bytes_))
      part.header_seen = moved = true;
    all_begun = all_begun && part.header_seen;
  }
  if (!all_begun) return moved;
  const uint64_t remaining = bytes_ - done_;
  uint64_t most = std::min(kPiece, limit_ ? *limit_ - done_ : remaining);
  for (const Part& part : parts_) {
    const std::span<const std::byte> available = part.channel->ring.available();
    sources_[static_cast<size_t>(part.channel->rank)] = available.data();
    most = std::min<uint64_t>(most, available.size());
  }
  const uint64_t count = piece(remaining, most);
  if (count > 0) {
    use_(done_, count, sources_.data());
    done_ += count;
    for (const Part& part : parts_) part.channel->release(whole_lines(count));
    moved = true;
  }
  if (moved)
    for (const Part& part : parts_) part.channel->futex->wake();
  if (done_ == bytes_) {
    is_done_ = true;
    for (const Part& part : parts_) ++part.channel->turn;
  }
  return moved;
}

bool FanInReduce::waits_for(int rank) const {
  return !is_done_ && std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.channel->rank == rank && part.channel->turn == part.turn &&
           part.channel->ring.available().empty();
  });
}

bool Operation::advance() {
  bool moved = false;
  for (SendMessage& part : outgoing) moved |= part.advance();
  if (fan_in) moved |= fan_in->advance();
  for (ReceiveMessage& part : incoming) moved |= part.advance();
  return moved;
}

bool Operation::is_done() const {
  const auto done = [](const auto& part) { return part.is_done(); };
  return std::all_of(outgoing.begin(), outgoing.end(), done) &&
         std::all_of(incoming.begin(), incoming.end(), done) && (!fan_in || fan_in->is_done()) &&
         (!expected || expected->is_done);
}

bool Operation::has_unsent() const {
  return std::any_of(outgoing.begin(), outgoing.end(),
                     [](const SendMessage& part) { return !part.is_done(); });
}

bool Operation::waits_for(int rank) const {
  const auto waits = [&](const auto& part) { return part.waits_for(rank); };
  return std::any_of(outgoing.begin(), outgoing.end(), waits) ||
         std::any_of(incoming.begin(), incoming.end(), waits) || (fan_in && waits(*fan_in));
}

}  // namespace titan::cpu
