// The groups over which a parameter is cut, for what needs more of it than a rank holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dist/chunk.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// One of Parameter::shardings with its numbers.
struct Cut {
  int64_t dim = 0;
  dist::Group group;
  dist::Chunk chunk;  ///< of what the cuts before have left of the dimension
};

/// In the order in which they were made. `mesh` may be null for a parameter that is not cut; throws
/// an internal Error when it is.
TITAN_API std::vector<Cut> cuts_of(const Parameter& parameter, const dist::Mesh* mesh);

/// Names of the groups over which it is cut: ranks that agree along these hold the same part
/// (dist::Grid::rest_of).
TITAN_API std::vector<std::string> cut_groups(const Parameter& parameter);

}  // namespace titan::nn
