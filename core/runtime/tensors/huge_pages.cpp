#include "core/runtime/tensors/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace titan::core {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
constexpr uintptr_t kNear = uintptr_t{64}
                            << 10;  // most bytes that an allocator puts between two blocks

using Range = std::pair<uintptr_t, uintptr_t>;

/// Merges neighbouring ranges, since a large page can hold the end of one and the start of the
/// next.
std::vector<Range> joined(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> result;
  for (const Range& range : ranges)
    if (!result.empty() && range.first <= result.back().second + kNear)
      result.back().second = std::max(result.back().second, range.second);
    else
      result.push_back(range);
  return result;
}

}  // namespace

void prefer_huge_pages(const std::vector<at::Tensor>& tensors) {
  std::vector<Range> ranges;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu() || tensor.numel() == 0) continue;
    const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    ranges.emplace_back(begin, begin + tensor.nbytes());
  }
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& [first, last] : joined(std::move(ranges))) {
    if (last - first < kHugePage) continue;
    const uintptr_t begin = first / page * page, end = (last + page - 1) / page * page;
    // only a hint: after an error the pages have the usual size
    static_cast<void>(
        ::madvise(reinterpret_cast<void*>(begin), static_cast<size_t>(end - begin), MADV_HUGEPAGE));
  }
}

}  // namespace titan::core
