#include "stream_order.h"

#include <algorithm>
#include <utility>

namespace titan::recording {
namespace {

constexpr size_t kMostMistakes = 50;

/// Adds `other` to `clock`: the maximum for each stream.
void join(Clock& clock, const Clock& other) {
  for (const auto& [stream, time] : other) clock[stream] = std::max(clock[stream], time);
}

std::string on(StreamId stream) {
  return stream == 0 ? "the default stream" : "stream " + std::to_string(stream);
}

bool overlap(const Access& a, const Access& b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

StreamOrder& order() {
  static auto* const order = new StreamOrder;
  return *order;
}

StepRecord& StreamOrder::step() {
  if (steps_.empty()) steps_.emplace_back();
  return steps_.back();
}

void StreamOrder::begin_step(int64_t number) {
  const std::lock_guard lock(mutex_);
  steps_.emplace_back().number = number;
}

void StreamOrder::complain(std::string text) {
  if (mistakes_.size() < kMostMistakes)
    mistakes_.push_back("step " + std::to_string(step().number) + ": " + std::move(text));
}

void StreamOrder::allocate(uintptr_t begin, int64_t bytes, StreamId stream) {
  const std::lock_guard lock(mutex_);
  Block& block = blocks_[begin] = {.bytes = bytes, .stream = stream};
  // earlier users of this memory were submitted to the same stream, and may not have finished
  if (const uint64_t time = clocks_[stream][stream]; time > 0)
    block.past.push_back(
        {.access = {.begin = begin, .end = begin + static_cast<uintptr_t>(bytes), .is_write = true},
         .stream = stream,
         .time = time,
         .what = "what had this memory before"});
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  ++step().num_allocated;
  step().trace.push_back("take " + std::to_string(bytes) + " bytes of " + on(stream));
}

void StreamOrder::allocate_pinned(uintptr_t begin, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  blocks_[begin] = {.bytes = bytes, .is_pinned = true};
}

void StreamOrder::judge_free(uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(begin);
  if (found == blocks_.end() || found->second.is_pinned) return;
  const Block& block = found->second;
  for (const Past& past : block.past)
    if (!block.kept_for.contains(past.stream) && !is_before(past, block.stream))
      complain("memory of " + on(block.stream) + " is freed while '" + past.what + "' on " +
               on(past.stream) + " may still use it");
}

void StreamOrder::forget(uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(begin);
  if (found == blocks_.end()) return;
  if (!found->second.is_pinned) in_use_ -= found->second.bytes;
  blocks_.erase(found);
}

void StreamOrder::keep_for(uintptr_t begin, StreamId stream) {
  const std::lock_guard lock(mutex_);
  if (Block* block = block_at(begin)) block->kept_for.insert(stream);
}

bool StreamOrder::is_pinned(uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  const Block* block = const_cast<StreamOrder*>(this)->block_at(address);
  return block && block->is_pinned;
}

StreamOrder::Block* StreamOrder::block_at(uintptr_t address) {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return nullptr;
  --found;
  const bool is_inside = address < found->first + static_cast<uintptr_t>(found->second.bytes);
  return is_inside ? &found->second : nullptr;
}

bool StreamOrder::is_before(const Past& past, StreamId stream) const {
  if (past.stream == stream) return true;
  const auto covers = [&](const Clock& clock) {
    const auto found = clock.find(past.stream);
    return found != clock.end() && found->second >= past.time;
  };
  const auto clock = clocks_.find(stream);
  return covers(host_) || (clock != clocks_.end() && covers(clock->second));
}

void StreamOrder::launch(const std::string& what, StreamId stream,
                         const std::vector<Access>& accesses) {
  const std::lock_guard lock(mutex_);
  Clock& clock = clocks_[stream];
  join(clock, host_);
  const uint64_t time = ++clock[stream];
  ++step().num_launches;
  step().trace.push_back(what + " on " + on(stream));
  for (const Access& access : accesses) {
    if (access.begin == access.end) continue;
    if (Block* block = block_at(access.begin))
      touch(*block, {.access = access, .stream = stream, .time = time, .what = what});
    else
      complain("'" + what + "' on " + on(stream) + " touches unallocated memory");
  }
}

void StreamOrder::touch(Block& block, const Past& now) {
  for (const Past& past : block.past)
    if ((past.access.is_write || now.access.is_write) && overlap(past.access, now.access) &&
        !is_before(past, now.stream))
      complain("'" + now.what + "' on " + on(now.stream) +
               (now.access.is_write ? " writes" : " reads") + " what '" + past.what + "' on " +
               on(past.stream) +
               (past.access.is_write ? " may not have written yet" : " may not have read yet"));
  // the new access makes accesses that it covers in place and order redundant
  std::erase_if(block.past, [&](const Past& past) {
    return past.access.begin >= now.access.begin && past.access.end <= now.access.end &&
           (now.access.is_write || !past.access.is_write) && is_before(past, now.stream);
  });
  block.past.push_back(now);
}

Clock StreamOrder::record(StreamId stream) {
  const std::lock_guard lock(mutex_);
  Clock clock = clocks_[stream];
  join(clock, host_);
  return clock;
}

void StreamOrder::wait(StreamId stream, const Clock& event) {
  const std::lock_guard lock(mutex_);
  join(clocks_[stream], event);
  ++step().num_waits;
  step().trace.push_back("wait on " + on(stream));
}

void StreamOrder::host_wait(const std::string& what, const Clock& event) {
  const std::lock_guard lock(mutex_);
  join(host_, event);
  complain_of_wait(what);
  step().host_waits.push_back(what);
}

void StreamOrder::host_wait_for_stream(const std::string& what, StreamId stream) {
  host_wait(what, record(stream));
}

void StreamOrder::host_wait_for_all(const std::string& what) {
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, clock] : clocks_) join(host_, clock);
  complain_of_wait(what);
  step().host_waits.push_back(what);
}

void StreamOrder::complain_of_wait(const std::string& what) {
  if (is_capturing_) complain("the host waits while a graph is recorded: " + what);
}

void StreamOrder::set_capturing(bool is_capturing) {
  const std::lock_guard lock(mutex_);
  is_capturing_ = is_capturing;
}

void StreamOrder::note_replay() {
  const std::lock_guard lock(mutex_);
  ++step().num_replays;
  step().trace.push_back("replay a graph");
}

void StreamOrder::note(const std::string& what) {
  const std::lock_guard lock(mutex_);
  step().host_waits.push_back(what);
}

std::vector<StepRecord> StreamOrder::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

std::vector<std::string> StreamOrder::mistakes() const {
  const std::lock_guard lock(mutex_);
  return mistakes_;
}

int64_t StreamOrder::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

int64_t StreamOrder::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void StreamOrder::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = in_use_;
}

}  // namespace titan::recording
