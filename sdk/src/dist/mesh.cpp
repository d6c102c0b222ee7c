#include <titan/dist/mesh.h>

#include <titan/error.h>

namespace titan::dist {

Mesh::Mesh() {
  const std::shared_ptr<Backend> alone = make_single_rank_backend();
  for (const char* axis :
       {"pp", "dp_replicate", "dp_shard", "cp", "tp", "dp", "fsdp", "loss", "world"})
    groups_.emplace(axis, Group(axis, alone));
}

const Group& Mesh::group(std::string_view axis) const {
  const auto found = groups_.find(axis);
  TITAN_ASSERT(found != groups_.end(), "the mesh has no axis '", axis, "'");
  return found->second;
}

}  // namespace titan::dist
