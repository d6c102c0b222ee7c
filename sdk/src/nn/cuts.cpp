#include <titan/nn/cuts.h>

#include <titan/error.h>

namespace titan::nn {

std::vector<Cut> cuts_of(const Parameter& parameter, const dist::Mesh* mesh) {
  std::vector<int64_t> sizes = parameter.global_shape();  // before the current cut
  std::vector<Cut> cuts;
  for (const Sharding& sharding : parameter.shardings()) {
    TITAN_ASSERT(mesh, "'", parameter.name(), "' is cut over '", sharding.group,
                 "', but no mesh was given");
    const dist::Group& group = mesh->group(sharding.group);
    int64_t& size = sizes[static_cast<size_t>(sharding.dim)];
    cuts.push_back({sharding.dim, group, dist::chunk_of(size, group)});
    size = cuts.back().chunk.size;
  }
  return cuts;
}

std::vector<std::string> cut_groups(const Parameter& parameter) {
  std::vector<std::string> names;
  for (const Sharding& sharding : parameter.shardings()) names.push_back(sharding.group);
  return names;
}

}  // namespace titan::nn
