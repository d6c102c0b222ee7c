#include "memory_log.h"

#include <algorithm>
#include <utility>

#include <titan/program/clock.h>

namespace titan::profiling {
namespace {

thread_local int32_t current_place = 0;
thread_local int forward_depth = 0;

}  // namespace

MemoryLog::MemoryLog(size_t max_entries)
    : max_entries_(std::max<size_t>(max_entries, 1)),
      places_{{.modules = {"another thread"}}, {}},
      doings_{""} {}

int32_t MemoryLog::add_place(MemoryPlace place) {
  const std::lock_guard lock(mutex_);
  places_.push_back(std::move(place));
  return static_cast<int32_t>(places_.size() - 1);
}

int32_t MemoryLog::enter(int32_t place) {
  return std::exchange(current_place, place);
}

void MemoryLog::follow(const dist::Recorder* recorder) {
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
}

int32_t MemoryLog::doing_now() {
  if (current_place == 0 || !recorder_) return 0;
  std::string doing = recorder_->activity();
  if (doing.empty()) doing = name_of(recorder_->clock().current());
  const auto [found, is_new] =
      number_of_doing_.emplace(std::move(doing), static_cast<int32_t>(doings_.size()));
  if (is_new) doings_.push_back(found->first);
  return found->second;
}

MemoryEvent MemoryLog::event_now(MemoryEvent::Action action, uint64_t address, int64_t bytes) {
  return {.action = action,
          .use = MemoryUseScope::current(),
          .place = current_place,
          .doing = doing_now(),
          .address = address,
          .bytes = bytes,
          .time_us = static_cast<int64_t>(1e6 * wall_seconds())};
}

void MemoryLog::record(const MemoryEvent& event) {
  if (ring_.size() < max_entries_)
    ring_.push_back(event);
  else
    ring_[num_events_ % max_entries_] = event;
  ++num_events_;
}

void MemoryLog::taken(uint64_t address, int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  Block block{.event = event_now(MemoryEvent::Action::taken, address, bytes),
              .number = ++last_number_,
              .slot = num_events_};
  record(block.event);
  live_bytes_ += bytes;
  if (forward_depth > 0) young_.push_back(address);
  if (live_bytes_ > peak_bytes_) {
    take_peak();
    peak_event_ = block.event;
  }
  live_[address] = std::move(block);
}

void MemoryLog::given_back(uint64_t address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) return;  // allocated before the log began
  const Block& block = found->second;
  record(event_now(MemoryEvent::Action::given_back, address, block.event.bytes));
  live_bytes_ -= block.event.bytes;
  if (block.number <= peak_number_) gone_since_.push_back(block);
  live_.erase(found);
}

void MemoryLog::refused(int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  record(event_now(MemoryEvent::Action::refused, 0, bytes));
  was_refused_ = true;
}

void MemoryLog::change(Block& block, MemoryUse use) {
  block.event.use = use;
  if (num_events_ - block.slot <= ring_.size()) ring_[block.slot % max_entries_].use = use;
}

void MemoryLog::relabel(uint64_t address, MemoryUse use, int32_t place) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) return;
  change(found->second, use);
  found->second.event.place = place;
}

void MemoryLog::begin_forward() {
  ++forward_depth;
}

/// An address that was freed and reused during the forward appears twice, which is harmless.
void MemoryLog::end_forward() {
  if (--forward_depth > 0) return;
  const std::lock_guard lock(mutex_);
  for (const uint64_t address : young_) {
    const auto found = live_.find(address);
    if (found != live_.end() && found->second.event.use == MemoryUse::temporary)
      change(found->second, MemoryUse::activations);
  }
  young_.clear();
}

void MemoryLog::take_peak() {
  peak_bytes_ = live_bytes_;
  peak_number_ = last_number_;
  gone_since_.clear();
}

void MemoryLog::reset_peak() {
  const std::lock_guard lock(mutex_);
  take_peak();
  peak_event_ = {};
}

MemoryPeakReport MemoryLog::peak() const {
  const std::lock_guard lock(mutex_);
  const MemoryPlace& place = places_[static_cast<size_t>(peak_event_.place)];
  MemoryPeakReport report{.bytes = peak_bytes_,
                          .doing = doings_[static_cast<size_t>(peak_event_.doing)],
                          .layer = place.layer,
                          .pass = place.pass};
  const auto add = [&](const Block& block) {
    const std::string& layer = places_[static_cast<size_t>(block.event.place)].layer;
    report.parts[{layer, block.event.use}] += block.event.bytes;
  };
  for (const Block& block : gone_since_) add(block);
  for (const auto& [address, block] : live_)
    if (block.number <= peak_number_) add(block);
  return report;
}

bool MemoryLog::was_refused() const {
  const std::lock_guard lock(mutex_);
  return was_refused_;
}

MemoryHistoryCopy MemoryLog::copy() const {
  const std::lock_guard lock(mutex_);
  MemoryHistoryCopy copy{.places = places_, .doings = doings_};
  const size_t first = num_events_ - ring_.size();
  copy.events.reserve(ring_.size());
  for (size_t i = first; i < num_events_; ++i) copy.events.push_back(ring_[i % max_entries_]);
  for (const auto& [address, block] : live_) copy.live.push_back(block.event);
  std::sort(copy.live.begin(), copy.live.end(),
            [](const MemoryEvent& a, const MemoryEvent& b) { return a.address < b.address; });
  return copy;
}

}  // namespace titan::profiling
