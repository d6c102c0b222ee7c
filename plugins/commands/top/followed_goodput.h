// The goodput of a run that goes on: reads what was appended to its history since the last time.
// Used by titan top.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/runs/goodput.h>

namespace titan::commands {

class FollowedGoodput {
 public:
  explicit FollowedGoodput(const std::filesystem::path& run_folder);

  /// In [0, 1], up to the last event; NaN when the run has no history that can be read.
  double share();

 private:
  void read_on();

  const std::filesystem::path path_;
  GoodputMeter meter_;
  int64_t taken_ = 0;       ///< bytes of the file
  std::string unfinished_;  ///< a line without its end
};

}  // namespace titan::commands
