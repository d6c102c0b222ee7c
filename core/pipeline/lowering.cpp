// See lowering.h.
#include "core/pipeline/lowering.h"

#include <titan/error.h>
#include <titan/pipelines/progress.h>

namespace titan::core {
namespace {

using Kind = PipelineAction::Kind;

class Lowering {
 public:
  Lowering(const PipelineTable& table, const std::vector<int>& rank_of_stage,
           const PipelineShape& shape)
      : table_(table),
        rank_of_stage_(rank_of_stage),
        shape_(shape),
        progress_(shape),
        next_(table.size(), 0),
        lowered_(table.size()) {}

  PipelineTable run() {
    // one action of each rank in turn: the turns decide the places of receives
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < table_.size(); ++rank) moved = step(rank) || moved;
    }
    for (size_t rank = 0; rank < table_.size(); ++rank)
      TITAN_ASSERT(next_[rank] == table_[rank].size(), "rank ", rank, " is stuck");
    return std::move(lowered_);
  }

 private:
  bool step(size_t rank) {
    const auto& list = table_[rank];
    const size_t begin = next_[rank];
    if (begin == list.size() || progress_.awaited(list, begin)) return false;
    const size_t end = begin + num_together(list, begin);
    lowered_[rank].insert(lowered_[rank].end(), list.begin() + static_cast<ptrdiff_t>(begin),
                          list.begin() + static_cast<ptrdiff_t>(end));
    for (size_t i = begin; i < end; ++i) {
      progress_.finish(list[i]);
      add_transfer(list[i]);
    }
    next_[rank] = end;
    return true;
  }

  void add_transfer(const PipelineAction& done) {
    if (done.kind == Kind::weight_grad) return;
    const bool is_forward = done.kind == Kind::forward;
    const int receiver = done.stage + (is_forward ? 1 : -1);
    if (receiver < 0 || receiver == shape_.num_stages) return;
    const size_t from = rank_of(done.stage), to = rank_of(receiver);
    if (from == to) return;
    lowered_[from].push_back(
        {is_forward ? Kind::send_output : Kind::send_grad, done.stage, done.microbatch});
    lowered_[to].push_back(
        {is_forward ? Kind::receive_input : Kind::receive_grad, receiver, done.microbatch});
  }

  size_t rank_of(int stage) const {
    return static_cast<size_t>(rank_of_stage_[static_cast<size_t>(stage)]);
  }

  const PipelineTable& table_;
  const std::vector<int>& rank_of_stage_;
  const PipelineShape& shape_;
  Progress progress_;
  std::vector<size_t> next_;
  PipelineTable lowered_;
};

}  // namespace

PipelineTable with_transfers(const PipelineTable& table, const std::vector<int>& rank_of_stage,
                             const PipelineShape& shape) {
  return Lowering(table, rank_of_stage, shape).run();
}

}  // namespace titan::core
