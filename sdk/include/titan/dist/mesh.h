// The device mesh of a run: the group of this rank along each named axis. Used by all code that
// needs a group of ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/dist/grid.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// The group of this rank along each axis and each named group of a Grid.
class TITAN_API Mesh {
 public:
  /// Connects the group called `name` of the global `ranks`, which include this rank. Called in the
  /// same order on all ranks, and only for groups of more than one rank.
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
  /// The complement of `groups` in `whole` (Grid::complement): the ranks over which to sum the
  /// gradient of a parameter that is sharded over `groups`.
  const Group& complement(std::string_view whole, const std::vector<std::string>& groups) const {
    return group(grid_.complement(whole, groups));
  }
  /// Deprecated name, until 0.3.
  const Group& rest_of(std::string_view whole, const std::vector<std::string>& groups) const {
    return complement(whole, groups);
  }
  /// Whether this rank is the representative rank of its data, if data is sharded over `groups`:
  /// the first of the ranks that differ only along axes outside of `groups` and so hold the same
  /// data.
  bool is_representative_over(const std::vector<std::string>& groups) const;
  /// Deprecated name, until 0.3.
  bool is_first_outside_of(const std::vector<std::string>& groups) const {
    return is_representative_over(groups);
  }
  /// Index in the group "dp", which determines this rank's rows of the global batch.
  int64_t batch_rank() const { return group("dp").rank(); }
  Recorder& recorder() const { return *recorder_; }
  /// The ranks with this rank's coordinates in the other replica groups of the run
  /// (titan/fault_tolerance/replicas.h), or this rank alone. Sums over all rows of a step are
  /// reduced over "dp" or "loss" and then over this group. Its members change between steps.
  const Group& replicas() const { return replicas_; }
  void set_replicas(Group replicas) { replicas_ = std::move(replicas); }
  /// Backend::set_timeout of every group.
  void set_timeout(std::chrono::milliseconds timeout) const;
  /// [any thread] Backend::abort of every group.
  void abort(const std::string& reason) const;

 private:
  Grid grid_;
  int rank_ = 0;
  std::shared_ptr<Recorder> recorder_;
  std::map<std::string, Group, std::less<>> groups_;
  Group replicas_;
};

}  // namespace titan::dist
