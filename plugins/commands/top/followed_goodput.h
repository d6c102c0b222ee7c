// Goodput of a run that is still writing: each call reads the lines appended to its history since
// the last one. Used by titan top.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/runs/goodput.h>

namespace titan::commands {

class FollowedGoodput {
 public:
  explicit FollowedGoodput(const std::filesystem::path& run_folder);

  /// In [0, 1], up to the last event; NaN when the run has no readable history.
  double share();

 private:
  void read_on();

  const std::filesystem::path path_;
  GoodputMeter meter_;
  int64_t taken_ = 0;       ///< bytes of the file that were read
  std::string unfinished_;  ///< the last line, while it is incomplete
};

}  // namespace titan::commands
