// The groups over which a parameter is sharded, for code that needs more of it than one rank's
// shard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dist/chunk.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// One of Parameter::shardings, with its group and this rank's chunk.
struct Cut {
  int64_t dim = 0;
  dist::Group group;
  dist::Chunk chunk;  ///< of the dimension as the previous cuts left it
};

/// In the order in which the shardings were made. `mesh` may be null if the parameter is not
/// sharded; otherwise a null mesh throws an internal Error.
TITAN_API std::vector<Cut> cuts_of(const Parameter& parameter, const dist::Mesh* mesh);

/// Names of the groups over which it is sharded. The ranks of the complement groups hold the same
/// shard (dist::Grid::complement).
TITAN_API std::vector<std::string> cut_groups(const Parameter& parameter);

}  // namespace titan::nn
