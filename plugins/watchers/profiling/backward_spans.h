// Records the backward time of each layer for traces, because autograd calls no layer. Used by
// profiling.cpp, only while profiling is on.
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
  /// [after all transforms] Wraps every layer of `part`. A layer's backward lasts from the gradient
  /// of its output to that of the next layer, or to the end of the pass. Deferred weight gradients
  /// are not included. This outlives the part's last forward.
  void attach(ModelPart& part);
  /// Starts or stops recording spans.
  void keep(bool keeps);
  /// The spans that ended since the last call, as events of a Chrome trace on a separate track of
  /// this process. `base_ns`: the trace's "baseTimeNanoseconds".
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
