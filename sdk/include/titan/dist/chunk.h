// How a dimension is divided over the ranks of a group.
#pragma once

#include <cstdint>

#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// The part of a dimension that one rank holds.
struct Chunk {
  int64_t full = 0;     ///< size of the whole dimension
  int64_t largest = 0;  ///< ceil(full / ranks): size on the first ranks
  int64_t begin = 0;
  int64_t size = 0;  ///< on the last ranks less than `largest`, down to 0
};

/// The chunk of this rank in `group`.
TITAN_API Chunk chunk_of(int64_t full, const Group& group);

}  // namespace titan::dist
