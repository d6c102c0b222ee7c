#include "memory_snapshot.h"

#include <map>
#include <string_view>
#include <tuple>

#include <titan/files/pickle_writer.h>

namespace titan::profiling {
namespace {

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const MemoryHistoryCopy& history) : history_(history) {}

  std::string write(size_t max_entries) {
    out_.map(2, [&](size_t i) {
      out_.put(i == 0 ? "segments" : "device_traces");
      if (i == 0)
        out_.list(history_.live.size(), [&](size_t block) { put_segment(history_.live[block]); });
      else
        out_.list(1, [&](size_t) { put_trace(max_entries); });
    });
    return out_.finish();
  }

 private:
  /// Each key and action is written once and referred to later.
  void put_text(std::string_view text) {
    const auto found = texts_.find(text);
    if (found != texts_.end()) return out_.put_again(found->second);
    out_.put(text);
    texts_.emplace(text, out_.remember());
  }
  template <class T>
  void put_member(const char* key, const T& value) {
    put_text(key);
    out_.put(value);
  }
  void put_word(const char* key, std::string_view value) {
    put_text(key);
    put_text(value);
  }

  void put_frame(std::string_view name, std::string_view file) {
    out_.map(3, [&](size_t i) {
      if (i == 0) put_word("name", name);
      if (i == 1) put_word("filename", file);
      if (i == 2) put_member("line", int64_t{0});
    });
  }

  void put_frames(const MemoryEvent& event) {
    put_text("frames");
    const bool has_use = event.action == MemoryEvent::Action::taken;
    const auto key = std::make_tuple(event.place, event.doing, has_use ? int(event.use) : -1);
    const auto found = frames_.find(key);
    if (found != frames_.end()) return out_.put_again(found->second);
    const MemoryPlace& place = history_.places[static_cast<size_t>(event.place)];
    const std::string& doing = history_.doings[static_cast<size_t>(event.doing)];
    const size_t num_modules = place.modules.size();
    const size_t count = num_modules + !doing.empty() + has_use;
    out_.list(count, [&](size_t i) {
      if (i < num_modules)
        put_frame(place.modules[i], place.pass);
      else if (i == num_modules && !doing.empty())
        put_frame(doing, "step");
      else
        put_frame(name_of_use(event.use), "use");
    });
    frames_.emplace(key, out_.remember());
  }

  void put_segment(const MemoryEvent& block) {
    const int64_t address = static_cast<int64_t>(block.address);
    out_.map(12, [&](size_t i) {
      if (i == 0) put_member("device", int64_t{0});
      if (i == 1) put_member("address", address);
      if (i == 2) put_member("total_size", block.bytes);
      if (i == 3) put_member("allocated_size", block.bytes);
      if (i == 4) put_member("active_size", block.bytes);
      if (i == 5) put_member("requested_size", block.bytes);
      if (i == 6) put_member("stream", int64_t{0});
      if (i == 7) put_word("segment_type", "large");
      if (i == 8) put_pool();
      if (i == 9) put_member("is_expandable", false);
      if (i == 10) put_frames(block);
      if (i == 11) put_blocks(block, address);
    });
  }
  void put_pool() {
    put_text("segment_pool_id");
    out_.list(2, [&](size_t) { out_.put(int64_t{0}); });
  }
  void put_blocks(const MemoryEvent& block, int64_t address) {
    put_text("blocks");
    out_.list(1, [&](size_t) {
      out_.map(5, [&](size_t i) {
        if (i == 0) put_member("address", address);
        if (i == 1) put_member("size", block.bytes);
        if (i == 2) put_member("requested_size", block.bytes);
        if (i == 3) put_word("state", "active_allocated");
        if (i == 4) put_frames(block);
      });
    });
  }

  void put_trace(size_t max_entries) {
    const std::vector<SnapshotEntry> entries = snapshot_entries(history_, max_entries);
    out_.list(entries.size(), [&](size_t i) { put_entry(entries[i]); });
  }
  void put_entry(const SnapshotEntry& entry) {
    const MemoryEvent& event = *entry.event;
    const bool is_oom = event.action == MemoryEvent::Action::refused;
    out_.map(6, [&](size_t i) {
      if (i == 0) put_word("action", entry.action);
      // viewers read the free memory of an "oom" here
      if (i == 1) put_member(is_oom ? "device_free" : "addr", static_cast<int64_t>(event.address));
      if (i == 2) put_member("size", event.bytes);
      if (i == 3) put_member("stream", int64_t{0});
      if (i == 4) put_member("time_us", event.time_us);
      if (i == 5) put_frames(event);
    });
  }

  const MemoryHistoryCopy& history_;
  PickleWriter out_;
  std::map<std::string, uint32_t, std::less<>> texts_;
  std::map<std::tuple<int32_t, int32_t, int>, uint32_t> frames_;
};

}  // namespace

const char* name_of_use(MemoryUse use) {
  switch (use) {
    case MemoryUse::temporary:
      return "temporary";
    case MemoryUse::parameters:
      return "parameters";
    case MemoryUse::gradients:
      return "gradients";
    case MemoryUse::optimizer_states:
      return "optimizer states";
    case MemoryUse::activations:
      return "activations";
    case MemoryUse::communication:
      return "communication";
  }
  return "";
}

std::vector<SnapshotEntry> snapshot_entries(const MemoryHistoryCopy& history, size_t max_entries) {
  std::vector<SnapshotEntry> entries;
  for (const MemoryEvent& event : history.events) {
    if (event.action == MemoryEvent::Action::taken) entries.push_back({&event, "alloc"});
    if (event.action == MemoryEvent::Action::refused) entries.push_back({&event, "oom"});
    if (event.action != MemoryEvent::Action::given_back) continue;
    entries.push_back({&event, "free_requested"});
    entries.push_back({&event, "free_completed"});
  }
  if (entries.size() > max_entries)
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(max_entries));
  return entries;
}

std::string to_memory_snapshot(const MemoryHistoryCopy& history, size_t max_entries) {
  return SnapshotWriter(history).write(max_entries);
}

}  // namespace titan::profiling
