// The ranks of a run as a grid with named axes, and the group of this rank along each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/dist/grid.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// The group of this rank along each axis and each named group of a Grid.
class TITAN_API Mesh {
 public:
  /// Connects the group called `name` of the global `ranks`, this one among them. Called in the
  /// same order on all ranks, for groups of more than one rank only.
  using Connect = std::function<std::shared_ptr<Backend>(const std::string& name,
                                                         const std::vector<int>& ranks)>;

  /// The mesh of a run of one rank.
  Mesh();
  /// Groups of the same ranks share one backend.
  Mesh(const Grid& grid, int rank, const Connect& connect,
       std::shared_ptr<Recorder> recorder = nullptr);

  const Grid& grid() const { return grid_; }
  int rank() const { return rank_; }
  /// Throws an internal Error for a name that the grid does not have.
  const Group& group(std::string_view name) const;
  /// The ranks of `whole` that agree along each of `groups` (Grid::rest_of): over which to sum the
  /// gradient of a parameter that is cut over `groups`.
  const Group& rest_of(std::string_view whole, const std::vector<std::string>& groups) const {
    return group(grid_.rest_of(whole, groups));
  }
  /// Whether this rank is the first of those that differ only along axes that `groups` do not
  /// have: of all that hold what it holds.
  bool is_first_outside_of(const std::vector<std::string>& groups) const;
  /// Position along the fused axis "dp": which rows of the global batch this rank owns.
  int64_t batch_rank() const { return group("dp").rank(); }
  Recorder& recorder() const { return *recorder_; }
  /// Of every group.
  void set_timeout(std::chrono::milliseconds timeout) const;
  /// [any thread] Backend::abort of every group.
  void abort(const std::string& reason) const;

 private:
  Grid grid_;
  int rank_ = 0;
  std::shared_ptr<Recorder> recorder_;
  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace titan::dist
