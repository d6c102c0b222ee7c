// Counts and logs documents that are not trained on because they do not fit a sequence or have
// nothing to learn. Shared by the row readers of a run.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace titan::core {

/// Thread-safe.
class SkippedDocuments {
 public:
  /// Counts a document of `source`. The 1st, 10th, 100th, ... of a source and reason is logged, so
  /// that the log reports each reason without filling up. `what`: action and reason, "left out,
  /// with more than 2049 tokens". Documents that a resumed run reads again are counted again.
  void add(const std::string& source, const std::string& what, const std::string& place);
  int64_t count(const std::string& source, const std::string& what) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int64_t> counts_;
};

}  // namespace titan::core
