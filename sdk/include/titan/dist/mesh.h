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

/// The global ranks of the group called `name` that `rank` belongs to, ascending: an axis of
/// MeshShape, or the fused axes "dp" = dp_replicate x dp_shard, "fsdp" = dp_shard x cp, "loss" =
/// dp x cp, "world" = all. World ranks are laid out row-major, the last axis fastest. Throws an
/// internal Error for another name.
TITAN_API std::vector<int> mesh_ranks(const MeshShape& shape, int rank, std::string_view name);

/// Whether the group called `name` spans `axis`: "fsdp" spans "dp_shard". Throws an internal Error
/// for names that mesh_ranks does not know.
TITAN_API bool spans(std::string_view name, std::string_view axis);

/// Groups by axis and by fused axes (see mesh_ranks).
class TITAN_API Mesh {
 public:
  /// Connects the group called `name` of the global `ranks`, this one among them. Called in the
  /// same order on all ranks, for groups of more than one rank only.
  using Connect = std::function<std::shared_ptr<Backend>(const std::string& name,
                                                         const std::vector<int>& ranks)>;

  /// The mesh of a run of one rank.
  Mesh();
  /// Groups of the same ranks share one backend.
  Mesh(const MeshShape& shape, int rank, const Connect& connect,
       std::shared_ptr<Recorder> recorder = nullptr);

  const MeshShape& shape() const { return shape_; }
  int rank() const { return rank_; }
  /// Throws an internal Error for a name that mesh_ranks does not know.
  const Group& group(std::string_view name) const;
  /// Position along the fused axis "dp": which rows of the global batch this rank owns.
  int64_t batch_rank() const { return group("dp").rank(); }
  Recorder& recorder() const { return *recorder_; }
  /// Of every group.
  void set_timeout(std::chrono::milliseconds timeout) const;

 private:
  MeshShape shape_;
  int rank_ = 0;
  std::shared_ptr<Recorder> recorder_;
  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace titan::dist
