// How the ranks of a run are counted: axes as ordered data, and the named groups over them. A
// parallelism adds rows of its own (titan/axes.h); everybody else asks this table. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan::dist {

/// Sizes of the core's own axes, outermost first.
struct MeshShape {
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = 1;
  int64_t cp = 1;
  int64_t tp = 1;

  int64_t world_size() const { return pp * dp_replicate * dp_shard * cp * tp; }
  /// Ranks that see different rows of the global batch.
  int64_t batch() const { return dp_replicate * dp_shard; }
};

/// The ranks row-major over ordered axes, the last one fastest, and named groups: sets of axes.
///
/// Its first rows are the axes of MeshShape, and the fused groups "dp" = dp_replicate x dp_shard,
/// "fsdp" = dp_shard x cp, "loss" = dp x cp, "world" = all and "self", one rank alone. An axis that
/// is borrowed is a part of others: it cuts them in two where it ends. Groups that existed before
/// keep their ranks.
class TITAN_API Grid {
 public:
  Grid() : Grid(MeshShape()) {}
  Grid(const MeshShape& core);  // NOLINT: the core's axes are a grid

  /// An axis with ranks of its own, next inside of dp_shard: its ranks see the same rows of the
  /// batch. Throws a config Error for a name that is taken or a degree < 1.
  void add(const std::string& name, int64_t degree);
  /// An axis over the innermost `degree` ranks of `axes`, which are named innermost first: they
  /// are used up one after the other. Every group that it takes a part of, say "fsdp", has its rest
  /// as the group "fsdp-<name>". Throws a config Error that says which degrees are possible when
  /// `degree` cannot be made of them, and for a name that is taken or unknown.
  void borrow(const std::string& name, int64_t degree, const std::vector<std::string>& axes);
  /// The group over `axes` (of axes or groups) but for those of `without`.
  void derive(const std::string& name, const std::vector<std::string>& axes,
              const std::vector<std::string>& without = {});

  int64_t world_size() const;
  /// Ranks that see different rows of the global batch.
  int64_t batch() const { return size("dp"); }
  bool has(std::string_view name) const;
  /// Of every axis and group, in the order of their declaration.
  std::vector<std::string> names() const;
  struct Axis {
    std::string name;
    int64_t size = 1;
    bool is_borrowed = false;  ///< its ranks are counted by other axes
  };
  /// Those of the core, outermost first, then the others as they were declared.
  std::vector<Axis> axes() const;
  /// These throw an internal Error for a name that nobody declared.
  int64_t size(std::string_view name) const;
  /// The global ranks of the group called `name` that `rank` belongs to, ascending.
  std::vector<int> ranks(int rank, std::string_view name) const;
  /// Whether each rank of the group `part` is in the same group `whole`: "fsdp" spans "dp_shard".
  bool spans(std::string_view whole, std::string_view part) const;
  /// Whether the two have an axis, or a part of one, in common.
  bool overlap(std::string_view a, std::string_view b) const;
  /// The name of the ranks of `whole` that agree along each of `groups`: "fsdp-experts". `whole`
  /// itself where none overlaps. Throws a config Error where no such group exists, because two of
  /// `groups` take different parts of it.
  std::string rest_of(std::string_view whole, const std::vector<std::string>& groups) const;

  /// Axes, and the parts that borrowing has cut them into, outermost first: the finest coordinates.
  struct Cell {
    int64_t size = 1;
    std::vector<std::string> names;  ///< of the axes that it is (a part of)
  };
  const std::vector<Cell>& cells() const { return cells_; }
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// For each cell whether the members of the group called `name` differ along it.
  std::vector<bool> varies(std::string_view name) const;
  /// The same of several groups together: along which cells some of them differ.
  std::vector<bool> varies(const std::vector<std::string>& names) const;

 private:
  struct Group {
    std::string name;
    std::vector<std::string> axes;  // names of cells
    std::vector<std::string> without;
    bool is_axis = false;
    bool is_borrowed = false;
  };

  const Group* find(std::string_view name) const;
  bool is_in(const Cell& cell, const Group& group) const;
  void require_new(const std::string& name, int64_t degree) const;

  std::vector<Cell> cells_;
  std::vector<Group> groups_;
};

}  // namespace titan::dist
