#include "ordered_pieces.h"

#include <chrono>
#include <utility>

namespace titan::tokenising {
namespace {

int64_t memory_of(const TokenPiece& piece) {
  return static_cast<int64_t>(piece.bytes.capacity() + piece.sizes.capacity() * sizeof(int32_t));
}

}  // namespace

bool OrderedPieces::put(TokenPiece piece) {
  std::unique_lock lock(mutex_);
  can_put_.wait(lock, [&] { return is_closed_ || piece.block == next_ || bytes_ < most_bytes_; });
  if (is_closed_) return false;
  bytes_ += memory_of(piece);
  const bool is_next = piece.block == next_;
  waiting_[piece.block].push_back(std::move(piece));
  if (is_next) can_take_.notify_one();
  return true;
}

void OrderedPieces::end_at(int64_t num_blocks) {
  const std::lock_guard lock(mutex_);
  num_blocks_ = num_blocks;
  can_take_.notify_one();
}

OrderedPieces::Taken OrderedPieces::take(TokenPiece& piece, double seconds) {
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] { return waiting_.contains(next_) || num_blocks_ == next_; };
  if (!can_take_.wait_for(lock, std::chrono::duration<double>(seconds), is_ready))
    return Taken::nothing_yet;
  const auto found = waiting_.find(next_);
  if (found == waiting_.end()) return Taken::end;
  piece = std::move(found->second.front());
  found->second.pop_front();
  bytes_ -= memory_of(piece);
  if (found->second.empty()) waiting_.erase(found);
  if (piece.end) ++next_;
  lock.unlock();
  can_put_.notify_all();
  return Taken::piece;
}

void OrderedPieces::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  can_put_.notify_all();
}

}  // namespace titan::tokenising
