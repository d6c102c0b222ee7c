#include <titan/dist/mesh.h>

#include <algorithm>
#include <array>

#include <titan/error.h>

namespace titan::dist {
namespace {

constexpr size_t kNumAxes = 5;
using Coordinates = std::array<int64_t, kNumAxes>;  // pp, dp_replicate, dp_shard, cp, tp

/// Which axes vary within the group.
struct NamedGroup {
  const char* name;
  std::array<bool, kNumAxes> varies;
};
constexpr NamedGroup kGroups[] = {
    {"world", {true, true, true, true, true}},
    {"pp", {true, false, false, false, false}},
    {"dp_replicate", {false, true, false, false, false}},
    {"dp_shard", {false, false, true, false, false}},
    {"cp", {false, false, false, true, false}},
    {"tp", {false, false, false, false, true}},
    {"dp", {false, true, true, false, false}},
    {"fsdp", {false, false, true, true, false}},
    {"loss", {false, true, true, true, false}},
};

const NamedGroup& group_called(std::string_view name) {
  const auto* group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                   [&](const NamedGroup& known) { return known.name == name; });
  TITAN_ASSERT(group != std::end(kGroups), "the mesh has no axis '", name, "'");
  return *group;
}

Coordinates sizes_of(const MeshShape& shape) {
  return {shape.pp, shape.dp_replicate, shape.dp_shard, shape.cp, shape.tp};
}

Coordinates coordinates_of(const Coordinates& sizes, int64_t rank) {
  Coordinates result{};
  for (size_t axis = kNumAxes; axis-- > 0; rank /= sizes[axis]) result[axis] = rank % sizes[axis];
  return result;
}

}  // namespace

std::vector<int> mesh_ranks(const MeshShape& shape, int rank, std::string_view name) {
  const NamedGroup& group = group_called(name);
  const Coordinates sizes = sizes_of(shape);
  const Coordinates own = coordinates_of(sizes, rank);
  std::vector<int> ranks;
  for (int64_t other = 0; other < shape.world_size(); ++other) {
    const Coordinates place = coordinates_of(sizes, other);
    bool is_member = true;
    for (size_t axis = 0; axis < kNumAxes; ++axis)
      is_member = is_member && (group.varies[axis] || place[axis] == own[axis]);
    if (is_member) ranks.push_back(static_cast<int>(other));
  }
  return ranks;
}

bool spans(std::string_view name, std::string_view axis) {
  const NamedGroup& group = group_called(name);
  const NamedGroup& alone = group_called(axis);
  for (size_t i = 0; i < kNumAxes; ++i)
    if (alone.varies[i] && !group.varies[i]) return false;
  return true;
}

Mesh::Mesh() : Mesh(MeshShape(), 0, nullptr) {}

Mesh::Mesh(const MeshShape& shape, int rank, const Connect& connect,
           std::shared_ptr<Recorder> recorder)
    : shape_(shape),
      rank_(rank),
      recorder_(recorder ? std::move(recorder) : std::make_shared<Recorder>()) {
  TITAN_ASSERT(rank >= 0 && rank < shape.world_size(), rank, " of ", shape.world_size());
  const std::shared_ptr<Backend> alone = make_single_rank_backend();
  std::map<std::vector<int>, std::shared_ptr<Backend>> connected;
  for (const NamedGroup& group : kGroups) {
    const std::vector<int> ranks = mesh_ranks(shape, rank, group.name);
    std::shared_ptr<Backend> backend = alone;
    if (ranks.size() > 1) {
      std::shared_ptr<Backend>& shared = connected[ranks];
      if (!shared) shared = connect(group.name, ranks);
      backend = shared;
    }
    groups_.emplace(group.name, Group(group.name, std::move(backend), recorder_));
  }
}

const Group& Mesh::group(std::string_view name) const {
  const auto found = groups_.find(name);
  TITAN_ASSERT(found != groups_.end(), "the mesh has no axis '", name, "'");
  return found->second;
}

void Mesh::set_timeout(std::chrono::milliseconds timeout) const {
  for (const auto& [name, group] : groups_) group.set_timeout(timeout);
}

}  // namespace titan::dist
