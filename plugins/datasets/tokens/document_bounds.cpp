// See document_bounds.h.
#include "plugins/datasets/tokens/document_bounds.h"

#include <algorithm>
#include <limits>

#include <titan/error.h>

namespace titan::datasets {
namespace {

constexpr uint64_t kBlockTokens = uint64_t{1} << 16;

}  // namespace

DocumentBounds scan_documents(const InputFile& file, const TokenLayout& layout, DocumentMark mark) {
  const uint64_t num_tokens = layout.num_tokens;
  const uint64_t behind = mark.place == DocumentMark::Place::last ? 1 : 0;
  DocumentBounds found;
  std::vector<uint64_t>& ends = found.ends;
  std::vector<int32_t> ids;
  for (uint64_t begin = 0; begin < num_tokens; begin += kBlockTokens) {
    read_tokens(file, layout, begin, std::min(begin + kBlockTokens, num_tokens), ids);
    for (auto at = ids.begin(); (at = std::find(at, ids.end(), mark.id)) != ids.end(); ++at) {
      const uint64_t end = begin + static_cast<uint64_t>(at - ids.begin()) + behind;
      if (end > 0) ends.push_back(end);
      ++found.num_marks;
    }
  }
  if (ends.empty() || ends.back() != num_tokens) ends.push_back(num_tokens);
  return found;
}

std::vector<uint64_t> read_datatrove_index(const InputFile& index) {
  const std::string name = index.path().string();
  TITAN_CHECK(index.size() % sizeof(uint64_t) == 0 && index.size() > 0, data, "'", name, "' has ",
              index.size(), " bytes, but an index has 8 bytes per document");
  std::vector<uint64_t> ends(index.size() / sizeof(uint64_t));
  index.read(0, index.size(), reinterpret_cast<char*>(ends.data()));
  const auto place = [&](auto entry) {
    // for a broken file -1 instead of 18446744073709551615
    return detail::concat("'", name, "' says at byte ", (entry - ends.begin()) * sizeof(uint64_t),
                          " that a document ends at token ", static_cast<int64_t>(*entry));
  };
  const auto negative = std::find_if(ends.begin(), ends.end(), [](uint64_t end) {
    return end > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  });
  TITAN_CHECK(negative == ends.end(), data, place(negative), ", which is negative");
  const auto falls = std::is_sorted_until(ends.begin(), ends.end());
  TITAN_CHECK(falls == ends.end(), data, place(falls), ", before the end of the previous one");
  return ends;
}

}  // namespace titan::datasets
