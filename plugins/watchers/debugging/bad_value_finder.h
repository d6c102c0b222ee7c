// Finds where a loss or gradient that is no number comes from: [debug] find_nan. A member of a
// step, before those that end the run because of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <titan/dist/mesh.h>

#include "module_watch.h"

namespace titan::debugging {

/// A step whose loss or norm is NaN or Inf is run once more, the same to the bit, and every tensor
/// of it is looked at; the first bad one in the order of the computation, over all ranks, ends the
/// run. Other steps cost one small reduction. What is skipped because float16 overflowed is none of
/// its business until the loss scale cannot shrink. Collective: all ranks have one.
class BadValueFinder final : public StepMember, public TensorWatcher {
 public:
  /// `device`: where the mesh communicates; both outlive this. `smallest_scale`: at which gradients
  /// that are no numbers are not due to the loss scale; none: there is no loss scale.
  BadValueFinder(const dist::Mesh& mesh, c10::Device device, std::optional<double> smallest_scale)
      : mesh_(mesh), device_(device), smallest_scale_(smallest_scale) {}

  bool watches(const Step& step) override;
  bool wants(std::string_view) const override { return true; }
  void see(const TensorPlace& place, const at::Tensor& tensor) override;

  /// data Error, the same on all ranks: what went bad first, or that nothing did when the step was
  /// run again; at once where no token of the step has a label.
  Judgement judge(const Step& step) override;

 private:
  struct Finding {
    TensorPlace place;
    std::string text;  // what was seen, without who and when
  };

  bool is_bad_here(const Step& step) const;
  std::string describe(const TensorPlace& place, const at::Tensor& tensor) const;
  [[noreturn]] void report(const Step& step);

  const dist::Mesh& mesh_;
  c10::Device device_;
  std::optional<double> smallest_scale_;
  int64_t looks_at_ = 0;  // step that is run again
  std::string before_;    // what its first run gave
  std::optional<Finding> first_;
  std::map<std::pair<int64_t, int64_t>, std::string> last_good_;  // by phase and microbatch
};

}  // namespace titan::debugging
