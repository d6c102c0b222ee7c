#include <titan/dist/recorder.h>

#include <algorithm>

#include "monotonic_clock.h"

namespace titan::dist {

Recorder::Recorder(size_t capacity) : ring_(std::max<size_t>(capacity, 1)) {}

int64_t Recorder::start(const std::string& group, std::string operation, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Traffic& traffic = traffic_[{group, operation.substr(0, operation.find(' '))}];
  ++traffic.calls;
  traffic.bytes += bytes;
  total_bytes_ += bytes;
  const int64_t ticket = next_ticket_++;
  Entry& entry = ring_[static_cast<size_t>(ticket) % ring_.size()];
  entry.ticket = ticket;
  entry.record = {.group = group,
                  .operation = std::move(operation),
                  .bytes = bytes,
                  .started = monotonic_now()};
  entry.record.sequence =
      ++sequences_[entry.record.is_message() ? group + " " + entry.record.operation : group];
  return ticket;
}

void Recorder::await(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  Entry& entry = ring_[static_cast<size_t>(ticket) % ring_.size()];
  if (entry.ticket == ticket) entry.record.awaited = monotonic_now();
}

void Recorder::finish(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  Entry& entry = ring_[static_cast<size_t>(ticket) % ring_.size()];
  if (entry.ticket == ticket) entry.record.finished = monotonic_now();
}

const Recorder::Entry* Recorder::entry_of(int64_t ticket) const {
  if (ticket < 0) return nullptr;
  const Entry& entry = ring_[static_cast<size_t>(ticket) % ring_.size()];
  return entry.ticket == ticket ? &entry : nullptr;
}

void Recorder::set_members(const std::string& group, Members members) {
  const std::lock_guard lock(mutex_);
  members_[group] = std::move(members);
}

Recorder::Members Recorder::members(const std::string& group) const {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(group);
  return found == members_.end() ? Members() : found->second;
}

void Recorder::set_activity(std::string activity) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
}

std::string Recorder::activity() const {
  const std::lock_guard lock(mutex_);
  return activity_;
}

CommRecord Recorder::find(int64_t ticket) const {
  const std::lock_guard lock(mutex_);
  const Entry* entry = entry_of(ticket);
  return entry ? entry->record : CommRecord();
}

std::vector<CommRecord> Recorder::records() const {
  const std::lock_guard lock(mutex_);
  std::vector<CommRecord> all;
  const int64_t capacity = static_cast<int64_t>(ring_.size());
  for (int64_t ticket = std::max<int64_t>(0, next_ticket_ - capacity); ticket < next_ticket_;
       ++ticket)
    all.push_back(entry_of(ticket)->record);
  return all;
}

int64_t Recorder::num_started() const {
  const std::lock_guard lock(mutex_);
  return next_ticket_;
}

/// Called once a second during a run: copies only the operations in flight.
std::vector<CommRecord> Recorder::in_flight() const {
  const std::lock_guard lock(mutex_);
  std::vector<CommRecord> open;
  const auto capacity = static_cast<int64_t>(ring_.size());
  for (int64_t ticket = std::max<int64_t>(0, next_ticket_ - capacity); ticket < next_ticket_;
       ++ticket)
    if (const CommRecord& record = entry_of(ticket)->record; record.finished == 0)
      open.push_back(record);
  return open;
}

std::map<std::pair<std::string, std::string>, Traffic> Recorder::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

int64_t Recorder::total_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_bytes_;
}

}  // namespace titan::dist
