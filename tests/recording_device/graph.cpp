#include "graph.h"

#include <mutex>
#include <utility>
#include <vector>

#include "stream_order.h"

namespace titan::recording {
namespace {

/// In the order in which the host gave them: the engine of autograd runs one after the other.
using Operations = std::vector<std::function<void()>>;

std::mutex mutex;
Operations* captured = nullptr;  // where operations go while a graph is recorded

class Graph final : public DeviceGraph {
 public:
  explicit Graph(Operations operations) : operations_(std::move(operations)) {}
  void replay() override {
    order().note_replay();
    for (const auto& operation : operations_) operation();
  }

 private:
  Operations operations_;
};

void capture_to(Operations* operations) {
  const std::lock_guard lock(mutex);
  captured = operations;
  order().set_capturing(operations != nullptr);
}

}  // namespace

std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work) {
  Operations operations;
  capture_to(&operations);
  try {
    work();
  } catch (...) {
    capture_to(nullptr);
    throw;
  }
  capture_to(nullptr);
  return std::make_unique<Graph>(std::move(operations));
}

void record_for_replay(std::function<void()> again) {
  const std::lock_guard lock(mutex);
  if (captured) captured->push_back(std::move(again));
}

bool is_capturing() {
  const std::lock_guard lock(mutex);
  return captured != nullptr;
}

}  // namespace titan::recording
