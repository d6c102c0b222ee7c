#include <titan/dist/mesh.h>

#include <titan/error.h>

namespace titan::dist {

Mesh::Mesh() : Mesh(Grid(), 0, nullptr) {}

Mesh::Mesh(const Grid& grid, int rank, const Connect& connect, std::shared_ptr<Recorder> recorder)
    : grid_(grid),
      rank_(rank),
      recorder_(recorder ? std::move(recorder) : std::make_shared<Recorder>()) {
  TITAN_ASSERT(rank >= 0 && rank < grid.world_size(), rank, " of ", grid.world_size());
  const std::shared_ptr<Backend> alone = make_single_rank_backend();
  std::map<std::vector<int>, std::shared_ptr<Backend>> connected;
  for (const std::string& name : grid.names()) {
    const std::vector<int> ranks = grid.ranks(rank, name);
    std::shared_ptr<Backend> backend = alone;
    if (ranks.size() > 1) {
      std::shared_ptr<Backend>& shared = connected[ranks];
      if (!shared) shared = connect(name, ranks);
      backend = shared;
      recorder_->set_members(name, {.ranks = ranks, .place = backend->rank()});
    }
    groups_.emplace(name, Group(name, std::move(backend), recorder_));
  }
}

const Group& Mesh::group(std::string_view name) const {
  const auto found = groups_.find(name);
  TITAN_ASSERT(found != groups_.end(), "the mesh has no axis or group '", name, "'");
  return found->second;
}

bool Mesh::is_representative_over(const std::vector<std::string>& groups) const {
  const std::vector<int64_t> own = grid_.coordinates(rank_);
  const std::vector<bool> is_inside = grid_.varies(groups);
  for (size_t i = 0; i < own.size(); ++i)
    if (!is_inside[i] && own[i] != 0) return false;
  return true;
}

void Mesh::set_timeout(std::chrono::milliseconds timeout) const {
  for (const auto& [name, group] : groups_) group.set_timeout(timeout);
}

void Mesh::abort(const std::string& reason) const {
  for (const auto& [name, group] : groups_) group.abort(reason);
}

}  // namespace titan::dist
