// The mesh layout of a run: ordered axes of ranks, and named groups over them. Parallelisms add
// axes and groups (titan/axes.h); all other code reads them here. No torch.
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

/// Ranks are numbered row-major over ordered axes, the last axis fastest. A named group is a set of
/// axes.
///
/// A new grid has the axes of MeshShape and the fused groups "world" = all, "self" = one rank
/// alone, "dp" = dp_replicate x dp_shard, "fsdp" = dp_shard x cp and "loss" = dp x cp. A borrowed
/// axis consists of parts of other axes; the axis in which it ends is cut in two. Existing groups
/// keep their ranks.
class TITAN_API Grid {
 public:
  Grid() : Grid(MeshShape()) {}
  Grid(const MeshShape& core);  // NOLINT: the core's axes are a grid

  /// Adds an axis that multiplies the number of ranks, directly inside of dp_shard. Its ranks see
  /// the same rows of the batch. Throws a config Error for a name that is taken or a degree < 1.
  void add(const std::string& name, int64_t degree);
  /// Adds an axis over the innermost `degree` ranks of `axes`, which are listed innermost first and
  /// used up in turn. For every group that overlaps it, say "fsdp", the complement becomes the
  /// group "fsdp-<name>". Throws a config Error for a name that is taken or unknown, and for a
  /// `degree` that `axes` cannot form; the message lists the possible degrees.
  void borrow(const std::string& name, int64_t degree, const std::vector<std::string>& axes);
  /// Adds the group over `axes` (names of axes or groups) except for the axes of `without`.
  void derive(const std::string& name, const std::vector<std::string>& axes,
              const std::vector<std::string>& without = {});

  int64_t world_size() const;
  /// Ranks that see different rows of the global batch.
  int64_t batch() const { return size("dp"); }
  bool has(std::string_view name) const;
  /// Names of all axes and groups, in order of declaration.
  std::vector<std::string> names() const;
  struct Axis {
    std::string name;
    int64_t size = 1;
    bool is_borrowed = false;  ///< other axes count its ranks
  };
  /// The core's axes, outermost first, then the others in order of declaration.
  std::vector<Axis> axes() const;
  /// This and the functions below throw an internal Error for an unknown name.
  int64_t size(std::string_view name) const;
  /// The global ranks of the group called `name` that `rank` belongs to, ascending.
  std::vector<int> ranks(int rank, std::string_view name) const;
  /// Whether all ranks of a group `part` are in one group `whole`: "fsdp" spans "dp_shard".
  bool spans(std::string_view whole, std::string_view part) const;
  /// Whether the two have an axis, or a part of one, in common.
  bool overlap(std::string_view a, std::string_view b) const;
  /// Name of the complement of `groups` in `whole`, "fsdp-experts": ranks of `whole` whose
  /// coordinates along each of `groups` are equal. `whole` itself if none of `groups` overlaps it.
  /// Throws a config Error if no such group exists, because two of `groups` overlap different parts
  /// of `whole`.
  std::string complement(std::string_view whole, const std::vector<std::string>& groups) const;
  /// Deprecated name, until 0.3.
  std::string rest_of(std::string_view whole, const std::vector<std::string>& groups) const {
    return complement(whole, groups);
  }

  /// An axis, or one of the parts into which borrowing has cut it.
  struct Cell {
    int64_t size = 1;
    std::vector<std::string> names;  ///< of the axes that contain it
  };
  /// Outermost first: the finest coordinates of a rank.
  const std::vector<Cell>& cells() const { return cells_; }
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// For each cell whether ranks of the group called `name` differ along it.
  std::vector<bool> varies(std::string_view name) const;
  /// For each cell whether ranks of any of the groups differ along it.
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
