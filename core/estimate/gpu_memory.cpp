#include "core/estimate/gpu_memory.h"

#include <algorithm>
#include <tuple>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <titan/ops/fused_head.h>

#include "core/config/selection/parallelism_selection.h"

namespace titan::core {
namespace {

/// LibTorch's default on compute capability 9.0 and 10.0, and the size of ":4096:8", which [debug]
/// deterministic sets on every device. Elsewhere the default is ":4096:2:16:8", 8.125 MiB.
constexpr int64_t kWorkspaceBytes = int64_t{8} * 4096 * 1024;
constexpr int64_t kNumThreads = 2;

/// Allocates as the fused head does: gradients, logits of one chunk in the dtype of `x`, losses.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy(const at::Tensor& x,
                                                                    const at::Tensor& weight,
                                                                    const at::Tensor&,
                                                                    bool needs_dx,
                                                                    bool needs_dweight) {
  const int64_t num_rows = x.size(0), rows = std::min(num_rows, ops::fused_head_rows(x, weight));
  const at::ScalarType type = weight.scalar_type();
  at::Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight)
    dweight =
        at::empty(weight.sizes(), weight.options().dtype(rows < num_rows ? at::kFloat : type));
  {
    const at::Tensor logits = at::empty({rows, weight.size(0)}, x.options());
    const at::Tensor losses = at::empty({rows}, x.options().dtype(at::kFloat));
  }
  if (needs_dweight) dweight = dweight.to(type);
  const bool is_double = x.scalar_type() == at::kDouble;
  return {at::empty({}, x.options().dtype(is_double ? at::kDouble : at::kFloat)), dx, dweight};
}

class NoWarning final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

}  // namespace

int64_t library_bytes(const JobConfig& config) {
  return runs_on_cpu(config) ? 0 : kNumThreads * kWorkspaceBytes;
}

SimulatedKernels::SimulatedKernels(const JobConfig& config) {
  if (runs_on_cpu(config)) return;
  NoWarning none;  // hides the warning that a kernel is replaced, which is intended
  const c10::WarningUtils::WarningHandlerGuard guard(&none);
  replaced_ = std::make_unique<torch::Library>(torch::Library::IMPL, "titan",
                                               c10::DispatchKey::Meta, __FILE__, __LINE__);
  replaced_->impl("linear_cross_entropy", TORCH_FN(linear_cross_entropy));
}

SimulatedKernels::~SimulatedKernels() = default;

}  // namespace titan::core
