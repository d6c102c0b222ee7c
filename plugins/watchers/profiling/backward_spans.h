// When the backward of each layer runs, for traces: autograd calls no layer there. Used by
// profiler, only while profiling is on.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <titan/model.h>

namespace titan::profiling {

/// Thread-safe.
class BackwardSpans {
 public:
  /// Goes around every layer of `part`: its backward lasts from the gradient of its output to that
  /// of the next layer, or to the end of the pass. Weight gradients that are put off are not in it.
  /// [after all transforms] This outlives the part's last forward.
  void attach(ModelPart& part);
  /// Spans are kept from now on, or not any more.
  void keep(bool keeps);
  /// Those that ended since the last call as events of a Chrome trace, on a track of their own of
  /// this process. `base_ns`: its "baseTimeNanoseconds".
  std::vector<std::string> take_events(int64_t base_ns);

 private:
  struct Span {
    size_t layer = 0;
    int64_t begin = 0, end = 0;  // nanoseconds since 1970
  };
  void enter(size_t layer);
  void end_pass();
  void close(int64_t now);

  std::mutex mutex_;
  std::vector<std::string> layers_;
  bool keeps_ = false, is_open_ = false;
  Span open_;
  std::vector<Span> spans_;
};

}  // namespace titan::profiling
