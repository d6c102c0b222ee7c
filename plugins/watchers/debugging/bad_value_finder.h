// Finds the origin of a NaN or infinite loss or gradient: [debug] find_nan. This step member comes
// before those that end the run because of such values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <titan/dist/mesh.h>

#include "module_watch.h"

namespace titan::debugging {

/// A step whose loss or norm is NaN or infinite is run once more, bitwise equal, and every tensor
/// is checked. The first bad one in order of computation, over all ranks, ends the run. Other steps
/// cost one small reduction. Steps skipped because float16 overflowed are ignored as long as the
/// loss scale can shrink. Collective: all ranks have one.
class BadValueFinder final : public StepMember, public TensorWatcher {
 public:
  /// `device`: where the mesh communicates; both outlive this. `smallest_scale`: at this loss scale
  /// NaN or infinite gradients are no longer caused by the scale; none: there is no loss scale.
  BadValueFinder(const dist::Mesh& mesh, c10::Device device, std::optional<double> smallest_scale)
      : mesh_(mesh), device_(device), smallest_scale_(smallest_scale) {}

  bool watches(const Step& step) override;
  bool wants(std::string_view) const override { return true; }
  void see(const TensorPlace& place, const at::Tensor& tensor) override;

  /// data Error, the same on all ranks: names the first bad tensor, or reports that the repeated
  /// step had none; without a repetition when no token of the step has a label.
  Judgement judge(const Step& step) override;

 private:
  struct Finding {
    TensorPlace place;
    std::string text;  // the observation, without rank and time
  };

  bool is_bad_here(const Step& step) const;
  std::string describe(const TensorPlace& place, const at::Tensor& tensor) const;
  [[noreturn]] void report(const Step& step);

  const dist::Mesh& mesh_;
  c10::Device device_;
  std::optional<double> smallest_scale_;
  int64_t looks_at_ = 0;  // the step that is repeated
  std::string before_;    // loss and norm of the first attempt
  std::optional<Finding> first_;
  std::map<std::pair<int64_t, int64_t>, std::string> last_good_;  // by phase and microbatch
};

}  // namespace titan::debugging
