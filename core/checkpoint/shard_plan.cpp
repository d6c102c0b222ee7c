#include "core/checkpoint/shard_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace titan::core {
namespace {

/// Which part of a tensor each rank of one pipeline stage holds, for each set of mesh axes that
/// shard it.
class Parts {
 public:
  /// Stages are the outermost axis, so the numbering is the same in each.
  explicit Parts(const dist::Grid& grid) : grid_(grid) {
    const std::vector<bool> is_stage = grid.varies("pp");
    for (size_t i = 0; i < is_stage.size(); ++i)
      if (!is_stage[i]) cells_.push_back(i);
    num_ranks_ = grid.world_size() / grid.size("pp");
    for (int64_t rank = 0; rank < num_ranks_; ++rank) places_.push_back(grid.coordinates(rank));
  }

  int64_t num_ranks() const { return num_ranks_; }

  struct Division {
    int64_t num_parts = 1;
    std::vector<int64_t> part_of_rank;  ///< ranks with one number hold the same elements
  };
  const Division& of(const StateTensor& tensor) {
    std::vector<std::string> groups;
    for (const nn::Sharding& cut : tensor.shardings) groups.push_back(cut.group);
    const std::vector<bool> is_cut = grid_.varies(groups);
    const auto [known, is_new] = divisions_.try_emplace(is_cut);
    if (is_new) number_parts(is_cut, known->second);
    return known->second;
  }

 private:
  void number_parts(const std::vector<bool>& is_cut, Division& division) const {
    for (const size_t cell : cells_)
      if (is_cut[cell]) division.num_parts *= grid_.cells()[cell].size;
    for (const std::vector<int64_t>& place : places_) {
      int64_t number = 0;
      for (const size_t cell : cells_)
        if (is_cut[cell]) number = number * grid_.cells()[cell].size + place[cell];
      division.part_of_rank.push_back(number);
    }
  }

  const dist::Grid& grid_;
  std::vector<size_t> cells_;  // those within a stage
  int64_t num_ranks_ = 1;
  std::vector<std::vector<int64_t>> places_;  // coordinates of the stage's ranks
  std::map<std::vector<bool>, Division> divisions_;
};

}  // namespace

std::vector<StateTensor> own_part(const std::vector<StateTensor>& state, const dist::Grid& grid,
                                  int rank) {
  Parts parts(grid);
  const int64_t num_ranks = parts.num_ranks();
  const int64_t own_rank = rank % num_ranks;

  std::vector<int64_t> load(static_cast<size_t>(num_ranks), 0);
  std::vector<StateTensor> own;
  for (const StateTensor& tensor : state) {
    if (tensor.is_copy) continue;
    const Parts::Division& division = parts.of(tensor);
    // all ranks hold a whole state, but it is only certain to be right where the parameter has
    // elements: the first part is never empty
    const int64_t num_written = tensor.is_whole ? 1 : division.num_parts;
    std::vector<int64_t> writers(static_cast<size_t>(num_written), -1);
    for (int64_t other = 0; other < num_ranks; ++other) {
      const int64_t part = division.part_of_rank[static_cast<size_t>(other)];
      if (part >= num_written) continue;
      int64_t& writer = writers[static_cast<size_t>(part)];
      if (writer < 0 || load[static_cast<size_t>(other)] < load[static_cast<size_t>(writer)])
        writer = other;
    }
    const int64_t elements =
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
    const int64_t bytes =  // as if evenly sharded: all ranks must compute the same sums
        elements * static_cast<int64_t>(tensor.tensor.element_size()) / num_written;
    for (const int64_t writer : writers)
      load[static_cast<size_t>(writer)] += std::max<int64_t>(bytes, 1);

    const int64_t part = division.part_of_rank[static_cast<size_t>(own_rank)];
    if (part < num_written && writers[static_cast<size_t>(part)] == own_rank &&
        tensor.slice.num_elements() > 0)
      own.push_back(tensor);
  }
  return own;
}

}  // namespace titan::core
