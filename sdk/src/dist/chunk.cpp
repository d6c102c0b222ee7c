#include <titan/dist/chunk.h>

#include <algorithm>

namespace titan::dist {

Chunk chunk_of(int64_t full, const Group& group) {
  const int64_t largest = (full + group.size() - 1) / group.size();
  const int64_t begin = std::min(full, largest * group.rank());
  return {full, largest, begin, std::min(full, begin + largest) - begin};
}

}  // namespace titan::dist
