// The ranks of a run as a grid with named axes, and the group of this rank along each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// Sizes of the axes, outermost first. Their product is the world size.
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

/// Groups by axis ("pp", "dp_replicate", "dp_shard", "cp", "tp") and by fused axes: "dp" =
/// dp_replicate x dp_shard, "fsdp" = dp_shard x cp, "loss" = dp x cp, "world".
class TITAN_API Mesh {
 public:
  /// The mesh of a run of one rank.
  Mesh();

  const MeshShape& shape() const { return shape_; }
  /// Throws an internal Error for a name that is none of the above.
  const Group& group(std::string_view axis) const;
  /// Position along the fused axis "dp": which rows of the global batch this rank owns.
  int64_t batch_rank() const { return group("dp").rank(); }

 private:
  MeshShape shape_;
  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace titan::dist
