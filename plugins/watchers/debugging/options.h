// Options of the watcher `debugging`. The keys of [debug] set them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace titan::debugging {

struct Options {
  bool find_nan = false;
  bool detect_anomaly = false;
  std::vector<std::string> trace_tensors;  ///< patterns of modules and weights
  int64_t trace_tensors_from = 1;
  std::optional<int64_t> trace_tensors_until;
  int64_t trace_tensors_every = 1;
};

}  // namespace titan::debugging
