#include "graph.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "stream_order.h"

namespace titan::recording {
namespace {

/// In the order in which the host submitted them; autograd's engine runs them one by one.
using Operations = std::vector<std::function<void()>>;

/// The functions that free the blocks which were returned to a graph's memory.
using Pool = std::vector<std::function<void()>>;

std::mutex mutex;
Operations* captured = nullptr;       // where operations go while a graph is recorded
Pool* pool = nullptr;                 // its memory
std::map<const void*, Pool*> owners;  // of blocks in use that a recording allocated

class Graph final : public DeviceGraph {
 public:
  ~Graph() override {
    {
      const std::lock_guard lock(mutex);
      std::erase_if(owners, [&](const auto& owner) { return owner.second == &pool_; });
    }
    for (const auto& free : pool_) free();
  }
  void record(const std::function<void()>& work) {
    capture_to(&operations_, &pool_);
    try {
      work();
    } catch (...) {
      capture_to(nullptr, nullptr);
      throw;
    }
    capture_to(nullptr, nullptr);
  }
  void replay() override {
    order().note_replay();
    for (const auto& operation : operations_) operation();
  }

 private:
  static void capture_to(Operations* operations, Pool* memory) {
    const std::lock_guard lock(mutex);
    captured = operations, pool = memory;
    order().set_capturing(operations != nullptr);
  }

  Operations operations_;
  Pool pool_;
};

}  // namespace

std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work) {
  auto graph = std::make_unique<Graph>();
  graph->record(work);
  return graph;
}

void record_for_replay(std::function<void()> again) {
  const std::lock_guard lock(mutex);
  if (captured) captured->push_back(std::move(again));
}

bool is_capturing() {
  const std::lock_guard lock(mutex);
  return captured != nullptr;
}

void taken(const void* memory) {
  const std::lock_guard lock(mutex);
  if (pool && memory) owners[memory] = pool;
}

void give_back(const void* memory, std::function<void()> free) {
  {
    const std::lock_guard lock(mutex);
    if (const auto owner = owners.find(memory); owner != owners.end()) {
      owner->second->push_back(std::move(free));
      owners.erase(owner);
      return;
    }
  }
  free();
}

}  // namespace titan::recording
