#include "chunked_loss.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <titan/error.h>

namespace titan::tensor_parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Each chunk costs the ranks a meeting, so chunks are larger than one rank alone would cut them.
constexpr int64_t kLogitsBytes = int64_t{32} << 20;
constexpr int64_t kMinChunkRows = 128;

struct LossAndGradients {
  Tensor loss, dx, dweight;
};

LossAndGradients run(const Tensor& x, const Tensor& weight, const Tensor& labels,
                     int64_t rows_per_chunk, const ChunkLoss& chunk_loss, bool needs_dx,
                     bool needs_dweight) {
  const at::ScalarType type = x.scalar_type();
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const bool gradient = needs_dx || needs_dweight;
  Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight) dweight = at::zeros(weight.sizes(), weight.options().dtype(wide));

  Tensor loss = at::zeros({}, x.options().dtype(at::kDouble));
  for (int64_t first = 0; first < x.size(0); first += rows_per_chunk) {
    const int64_t rows = std::min(rows_per_chunk, x.size(0) - first);
    const Tensor in = x.narrow(0, first, rows);
    const Tensor logits = at::mm(in, weight.t()).to(wide);
    loss.add_(chunk_loss(logits, labels.narrow(0, first, rows), gradient));
    if (!gradient) continue;
    const Tensor dlogits = logits.to(type);
    if (needs_dx) {
      Tensor out = dx.narrow(0, first, rows);
      at::mm_out(out, dlogits, weight);
    }
    if (!needs_dweight) continue;
    if (type == wide)
      dweight.addmm_(dlogits.t(), in);
    else
      dweight.add_(at::mm(dlogits.t(), in));
  }
  if (needs_dweight) dweight = dweight.to(type);
  return {loss.to(wide), dx, dweight};
}

struct ChunkedLoss : torch::autograd::Function<ChunkedLoss> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& labels, int64_t rows_per_chunk, const ChunkLoss& chunk_loss) {
    const LossAndGradients result = run(x, weight, labels, rows_per_chunk, chunk_loss,
                                        x.requires_grad(), weight.requires_grad());
    ctx->save_for_backward({result.dx, result.dweight});
    return result.loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    TITAN_CHECK(!at::GradMode::is_enabled(), config,
                "the loss of tensor parallelism cannot be differentiated twice: call backward "
                "without create_graph");
    // a graph that may be walked again keeps its gradients untouched; else they are handed over
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    const variable_list saved = ctx->get_saved_variables();
    variable_list out(5);
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i].defined()) continue;
      out[i] = keep ? saved[i].mul(grads[0]) : saved[i].mul_(grads[0]);
    }
    return out;
  }
};

}  // namespace

int64_t chunk_rows(int64_t num_rows, int64_t vocab_size) {
  const int64_t most = std::max(kMinChunkRows, kLogitsBytes / (4 * vocab_size));
  const int64_t num_chunks = std::max<int64_t>(1, (num_rows + most - 1) / most);
  return std::max<int64_t>(1, (num_rows + num_chunks - 1) / num_chunks);
}

Tensor chunked_loss(const Tensor& x, const Tensor& weight, const Tensor& labels,
                    int64_t rows_per_chunk, const ChunkLoss& chunk_loss) {
  if (at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad()))
    return ChunkedLoss::apply(x, weight, labels, rows_per_chunk, chunk_loss);
  return run(x, weight, labels, rows_per_chunk, chunk_loss, /*needs_dx=*/false,
             /*needs_dweight=*/false)
      .loss;
}

}  // namespace titan::tensor_parallel
