#include "core/data/skipped_documents.h"

#include <titan/log.h>

namespace titan::core {
namespace {

bool is_power_of_ten(int64_t count) {
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

}  // namespace

void SkippedDocuments::add(const std::string& source, const std::string& what,
                           const std::string& place) {
  const std::lock_guard lock(mutex_);
  const int64_t count = ++counts_[{source, what}];
  if (!is_power_of_ten(count)) return;
  log::warn("source '" + source + "': " + std::to_string(count) +
            (count == 1 ? " document was " : " documents were ") + what + "; the last one is " +
            place);
}

int64_t SkippedDocuments::count(const std::string& source, const std::string& what) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find({source, what});
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace titan::core
