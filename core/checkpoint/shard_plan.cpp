#include "core/checkpoint/shard_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace titan::core {
namespace {

constexpr size_t kNumAxes = 4;
constexpr std::array<const char*, kNumAxes> kAxes = {"dp_replicate", "dp_shard", "cp", "tp"};
using Coordinates = std::array<int64_t, kNumAxes>;

/// Of the ranks of one pipeline stage.
struct Grid {
  Coordinates sizes;

  int64_t num_ranks() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  Coordinates coordinates(int64_t rank) const {
    Coordinates place{};
    for (size_t axis = kNumAxes; axis-- > 0; rank /= sizes[axis]) place[axis] = rank % sizes[axis];
    return place;
  }
};

using IsCut = std::array<bool, kNumAxes>;

IsCut cut_axes(const StateTensor& tensor) {
  IsCut cut{};
  for (size_t axis = 0; axis < kNumAxes; ++axis)
    for (const nn::Sharding& sharding : tensor.shardings)
      cut[axis] = cut[axis] || dist::spans(sharding.group, kAxes[axis]);
  return cut;
}

/// Numbers the part that a rank holds: ranks with one number hold the same elements.
int64_t part_number(const Grid& grid, const IsCut& cut, const Coordinates& place) {
  int64_t number = 0;
  for (size_t axis = 0; axis < kNumAxes; ++axis)
    if (cut[axis]) number = number * grid.sizes[axis] + place[axis];
  return number;
}

}  // namespace

std::vector<StateTensor> own_part(const std::vector<StateTensor>& state,
                                  const dist::MeshShape& shape, int rank) {
  const Grid grid{{shape.dp_replicate, shape.dp_shard, shape.cp, shape.tp}};
  const int64_t num_ranks = grid.num_ranks();
  const int64_t own_rank = rank % num_ranks;  // stages are the outermost axis

  std::vector<int64_t> load(static_cast<size_t>(num_ranks), 0);
  std::vector<StateTensor> own;
  for (const StateTensor& tensor : state) {
    if (tensor.is_copy) continue;
    const IsCut cut = cut_axes(tensor);
    int64_t num_parts = 1;
    for (size_t axis = 0; axis < kNumAxes; ++axis)
      if (cut[axis]) num_parts *= grid.sizes[axis];
    // a single number is known to all, but sure to be right only where the parameter has elements:
    // the first part is never empty
    const int64_t num_written = tensor.is_scalar ? 1 : num_parts;
    std::vector<int64_t> writers(static_cast<size_t>(num_written), -1);
    for (int64_t other = 0; other < num_ranks; ++other) {
      const int64_t part = part_number(grid, cut, grid.coordinates(other));
      if (part >= num_written) continue;
      int64_t& writer = writers[static_cast<size_t>(part)];
      if (writer < 0 || load[static_cast<size_t>(other)] < load[static_cast<size_t>(writer)])
        writer = other;
    }
    const int64_t elements =
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
    const int64_t bytes =  // as if evenly cut: all ranks have to come to the same sums
        elements * static_cast<int64_t>(tensor.tensor.element_size()) / num_written;
    for (const int64_t writer : writers)
      load[static_cast<size_t>(writer)] += std::max<int64_t>(bytes, 1);

    const int64_t part = part_number(grid, cut, grid.coordinates(own_rank));
    if (part < num_written && writers[static_cast<size_t>(part)] == own_rank &&
        tensor.slice.num_elements() > 0)
      own.push_back(tensor);
  }
  return own;
}

}  // namespace titan::core
