// See validation.h.
#include <titan/pipelines/validation.h>

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include <titan/error.h>
#include <titan/pipelines/progress.h>

namespace titan {
namespace {

using Kind = PipelineAction::Kind;
using titan::detail::concat;

/// Collects the first few problems.
class Problems {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    constexpr size_t kMost = 10;
    if (texts_.size() < kMost)
      texts_.push_back(concat(parts...));
    else if (texts_.size() == kMost)
      texts_.push_back("and more");
  }
  bool is_full() const { return !texts_.empty() && texts_.back() == "and more"; }
  bool is_empty() const { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
};

std::string named(Kind kind, int stage, int microbatch) {
  return to_string(PipelineAction{kind, stage, microbatch});
}

/// Walks over the cells and records those it has seen: memory grows with the table, not with the
/// claimed shape.
class CellCheck {
 public:
  CellCheck(const PipelineShape& shape, Problems& problems) : shape_(shape), problems_(problems) {}

  void check_rank(int rank, const std::vector<PipelineAction>& list) {
    rank_ = rank;
    for (size_t i = 0; i < list.size() && !problems_.is_full(); ++i) {
      check_overlap(list, i);
      if (is_in_range(list[i])) check_cell(list[i]);
    }
  }

  void check_all_is_there() {
    for (int stage = 0; stage < shape_.num_stages; ++stage) {
      for (int microbatch = 0; microbatch < shape_.num_microbatches; ++microbatch) {
        if (problems_.is_full()) return;
        const Seen& seen = seen_[key(stage, microbatch)];
        if (!seen.forward) problems_.add(named(Kind::forward, stage, microbatch), " is missing");
        if (!seen.backward && !seen.input_grad && !seen.weight_grad)
          problems_.add(named(Kind::backward, stage, microbatch), " is missing, or ",
                        named(Kind::input_grad, stage, microbatch), " and ",
                        named(Kind::weight_grad, stage, microbatch));
        else if (seen.input_grad && !seen.weight_grad)
          problems_.add(named(Kind::weight_grad, stage, microbatch), " is missing; ",
                        named(Kind::input_grad, stage, microbatch), " does not include it");
      }
    }
  }

  void check_stages_per_rank() {
    std::map<int, int> counts;
    for (int rank = 0; rank < shape_.num_ranks; ++rank) counts[rank] = 0;
    for (const auto& [stage, rank] : rank_of_stage_) ++counts[rank];
    for (const auto& [rank, count] : counts)
      if (count != shape_.stages_per_rank())
        problems_.add("rank ", rank, " holds ", count, " stages, but each of ", shape_.num_ranks,
                      " ranks must hold ", shape_.stages_per_rank());
  }

 private:
  struct Seen {
    bool forward = false, backward = false, input_grad = false, weight_grad = false;
  };
  static uint64_t key(int stage, int microbatch) {
    return static_cast<uint64_t>(stage) << 32 | static_cast<uint32_t>(microbatch);
  }

  void check_overlap(const std::vector<PipelineAction>& list, size_t i) {
    if (!list[i].overlaps_next) return;
    const bool is_pair = i + 1 < list.size() && list[i].kind == Kind::forward &&
                         list[i + 1].kind == Kind::backward && !list[i + 1].overlaps_next;
    if (!is_pair)
      problems_.add("rank ", rank_, ": ", to_string(list[i]), " overlaps ",
                    i + 1 < list.size() ? to_string(list[i + 1]) : "nothing",
                    ", but only a forward can overlap, with one backward directly after it");
  }

  bool is_in_range(const PipelineAction& action) {
    const bool stage_is = action.stage >= 0 && action.stage < shape_.num_stages;
    const bool microbatch_is =
        action.microbatch >= 0 && action.microbatch < shape_.num_microbatches;
    if (!stage_is)
      problems_.add("rank ", rank_, ": ", to_string(action),
                    " has a stage that does not exist; number of stages: ", shape_.num_stages);
    else if (!microbatch_is)
      problems_.add("rank ", rank_, ": ", to_string(action),
                    " has a microbatch that does not exist; number of microbatches: ",
                    shape_.num_microbatches);
    return stage_is && microbatch_is;
  }

  void check_cell(const PipelineAction& action) {
    const auto [place, is_new] = rank_of_stage_.emplace(action.stage, rank_);
    if (!is_new && place->second != rank_ && reported_stages_.insert(action.stage).second)
      problems_.add("stage ", action.stage, " is on rank ", place->second, " and on rank ", rank_,
                    " (", to_string(action), ")");
    Seen& seen = seen_[key(action.stage, action.microbatch)];
    switch (action.kind) {
      case Kind::forward:
        once(seen.forward, action);
        return;
      case Kind::backward:
        if (seen.input_grad || seen.weight_grad)
          problems_.add("rank ", rank_, ": ", to_string(action),
                        " repeats a backward that was done in two halves");
        behind(seen.forward, action, Kind::forward);
        once(seen.backward, action);
        return;
      case Kind::input_grad:
        whole_is_not_done(seen, action);
        behind(seen.forward, action, Kind::forward);
        once(seen.input_grad, action);
        return;
      case Kind::weight_grad:
        whole_is_not_done(seen, action);
        behind(seen.input_grad, action, Kind::input_grad);
        once(seen.weight_grad, action);
        return;
      default:
        problems_.add("rank ", rank_, ": ", to_string(action),
                      " is communication; a schedule gives F, B, I and W");
    }
  }

  void once(bool& seen, const PipelineAction& action) {
    if (seen) problems_.add("rank ", rank_, ": ", to_string(action), " occurs twice");
    seen = true;
  }
  void behind(bool seen, const PipelineAction& action, Kind first) {
    if (!seen)
      problems_.add("rank ", rank_, ": ", to_string(action), " is not preceded by ",
                    named(first, action.stage, action.microbatch));
  }
  void whole_is_not_done(const Seen& seen, const PipelineAction& action) {
    if (seen.backward)
      problems_.add("rank ", rank_, ": ", to_string(action), " repeats a part of ",
                    named(Kind::backward, action.stage, action.microbatch));
  }

  const PipelineShape& shape_;
  Problems& problems_;
  int rank_ = 0;
  std::unordered_map<uint64_t, Seen> seen_;
  std::map<int, int> rank_of_stage_;
  std::set<int> reported_stages_;
};

/// The cell that produces the awaited value, and its rank: for a B it may be an I.
std::string giver(const PipelineTable& table, const PipelineAction& awaited) {
  for (size_t rank = 0; rank < table.size(); ++rank)
    for (const PipelineAction& action : table[rank])
      if (action.stage == awaited.stage && action.microbatch == awaited.microbatch &&
          (action.kind == awaited.kind ||
           (action.kind == Kind::input_grad && awaited.kind == Kind::backward)))
        return concat(to_string(action), " of rank ", rank);
  fail(ErrorKind::internal, to_string(awaited), " is in no list of a complete table");
}

void check_runs_to_the_end(const PipelineTable& table, const PipelineShape& shape,
                           Problems& problems) {
  Progress progress(shape);
  std::vector<size_t> next(table.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < table.size(); ++rank) {
      const auto& list = table[rank];
      while (next[rank] < list.size() && !progress.awaited(list, next[rank])) {
        const size_t end = next[rank] + num_together(list, next[rank]);
        while (next[rank] < end) progress.finish(list[next[rank]++]);
        moved = true;
      }
    }
  }
  for (size_t rank = 0; rank < table.size(); ++rank) {
    if (next[rank] == table[rank].size()) continue;
    const auto missing = progress.awaited(table[rank], next[rank]);
    problems.add("rank ", rank, " waits for ever at ", to_string(table[rank][next[rank]]), " for ",
                 giver(table, *missing));
  }
}

}  // namespace

std::vector<std::string> table_problems(const PipelineTable& table, const PipelineShape& shape) {
  Problems problems;
  if (table.size() != static_cast<size_t>(shape.num_ranks)) {
    problems.add("it has lists for ", table.size(), " ranks, but there are ", shape.num_ranks);
    return problems.take();
  }
  CellCheck cells(shape, problems);
  for (int rank = 0; rank < shape.num_ranks; ++rank)
    cells.check_rank(rank, table[static_cast<size_t>(rank)]);
  cells.check_all_is_there();
  if (problems.is_empty()) cells.check_stages_per_rank();
  if (problems.is_empty()) check_runs_to_the_end(table, shape, problems);
  return problems.take();
}

std::vector<int> ranks_of_stages(const PipelineTable& table, const PipelineShape& shape) {
  std::vector<int> ranks(static_cast<size_t>(shape.num_stages), -1);
  for (size_t rank = 0; rank < table.size(); ++rank)
    for (const PipelineAction& action : table[rank])
      ranks[static_cast<size_t>(action.stage)] = static_cast<int>(rank);
  return ranks;
}

}  // namespace titan
