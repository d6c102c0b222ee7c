// See token_file.h.
#include "plugins/datasets/tokens/token_file.h"

#include <algorithm>

#include <titan/error.h>

namespace titan::datasets {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;  // a multiple of all widths

}  // namespace

void read_tokens(const InputFile& file, const TokenLayout& layout, uint64_t begin, uint64_t end,
                 std::vector<int32_t>& ids) {
  TITAN_ASSERT(begin <= end && end <= layout.num_tokens, begin, " to ", end, " of ",
               layout.num_tokens);
  const size_t width = width_of(layout.type);
  ids.resize(end - begin);
  char block[kBlockBytes];
  for (uint64_t at = begin; at < end;) {
    const size_t count = std::min<uint64_t>(end - at, kBlockBytes / width);
    const uint64_t offset = layout.first_byte + at * width;
    file.read(offset, offset + count * width, block);
    const size_t good = decode_ids(layout.type, block, count, ids.data() + (at - begin));
    TITAN_CHECK(good == count, data, "'", file.path().string(), "' holds ",
                decode_id(layout.type, block + good * width), " as the id at byte ",
                offset + good * width, "; ids are from 0 to 2147483647");
    at += count;
  }
}

}  // namespace titan::datasets
