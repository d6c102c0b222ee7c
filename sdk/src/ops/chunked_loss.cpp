#include <titan/ops/chunked_loss.h>

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/ops/mm.h>
#include <torch/csrc/autograd/graph_task.h>

#include "autograd.h"

namespace titan::ops {
namespace {

/// Each chunk reads the whole weight twice and adds to its whole gradient. With a vocabulary of
/// 32,000, chunks of 128 rows take a quarter more time than those of 1,024, chunks of 512 rows 2 %
/// more.
constexpr int64_t kMinChunkRows = 512;

struct ReadyGradients : torch::autograd::Function<ReadyGradients> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const char* operation, const ComputeLoss& compute) {
    const LossAndGradients result = compute(x.requires_grad(), weight.requires_grad());
    ctx->saved_data["operation"] = std::string(operation);
    ctx->save_for_backward({result.dx, result.dweight});
    return result.loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once(ctx->saved_data["operation"].toStringRef().c_str());
    variable_list saved = ctx->get_saved_variables();
    const at::Tensor& factor = grads[0];
    // If the graph may run again, its gradients stay unchanged; else they are moved out.
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    BelowAutograd guard;
    // On other devices than the CPU, reading the value would wait for the device.
    const bool is_one = factor.is_cpu() && factor.item<double>() == 1;
    variable_list out(4);
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!ctx->needs_input_grad(i) || !saved[i].defined()) continue;
      out[i] = keep ? saved[i].clone() : saved[i];
      if (!is_one) out[i].mul_(factor);
    }
    return out;
  }
};

}  // namespace

int64_t chunk_rows(int64_t num_rows, int64_t num_words, int64_t bytes) {
  const int64_t most = std::max(kMinChunkRows, bytes / (4 * num_words));
  const int64_t num_chunks = std::max<int64_t>(1, (num_rows + most - 1) / most);
  return std::max<int64_t>(1, (num_rows + num_chunks - 1) / num_chunks);
}

LossAndGradients run_chunks(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels,
                            int64_t rows_per_chunk, const ChunkLoss& chunk_loss, bool needs_dx,
                            bool needs_dweight) {
  const int64_t num_rows = x.size(0);
  const at::ScalarType type = x.scalar_type();
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const bool gradient = needs_dx || needs_dweight;

  at::Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight) dweight = at::empty(weight.sizes(), weight.options().dtype(wide));
  if (needs_dweight && num_rows == 0) dweight.zero_();

  const at::Tensor buffer =
      at::empty({std::min(rows_per_chunk, num_rows), weight.size(0)}, x.options());
  at::Tensor loss = at::zeros({}, x.options().dtype(at::kDouble));
  for (int64_t first = 0; first < num_rows; first += rows_per_chunk) {
    const int64_t rows = std::min(rows_per_chunk, num_rows - first);
    const at::Tensor in = x.narrow(0, first, rows);
    at::Tensor product = buffer.narrow(0, 0, rows);
    ops::mm_into(product, in, weight.t());
    const at::Tensor logits = product.to(wide);
    loss.add_(chunk_loss(logits, labels.narrow(0, first, rows), gradient));
    if (!gradient) continue;
    const at::Tensor dlogits = type == wide ? logits : product.copy_(logits);
    if (needs_dx) {
      at::Tensor out = dx.narrow(0, first, rows);
      ops::mm_into(out, dlogits, weight);
    }
    if (!needs_dweight) continue;
    if (type != wide) {
      const at::Tensor share = ops::mm(dlogits.t(), in);
      first == 0 ? dweight.copy_(share) : dweight.add_(share);
    } else if (first == 0) {
      at::mm_out(dweight, dlogits.t(), in);
    } else {
      dweight.addmm_(dlogits.t(), in);
    }
  }
  if (needs_dweight) dweight = dweight.to(type);
  return {loss.to(wide), dx, dweight};
}

at::Tensor chunked_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels,
                        int64_t rows_per_chunk, const ChunkLoss& chunk_loss) {
  return with_ready_gradients(x, weight, "chunked_loss", [&](bool needs_dx, bool needs_dweight) {
    return run_chunks(x, weight, labels, rows_per_chunk, chunk_loss, needs_dx, needs_dweight);
  });
}

at::Tensor with_ready_gradients(const at::Tensor& x, const at::Tensor& weight,
                                const char* operation, const ComputeLoss& compute) {
  if (records_graph({&x, &weight})) return ReadyGradients::apply(x, weight, operation, compute);
  return compute(/*needs_dx=*/false, /*needs_dweight=*/false).loss;
}

void check_labels(const at::Tensor& labels, int64_t vocab_size) {
  if (!labels.is_cpu()) return;
  const at::Tensor flat = labels.contiguous();
  const int64_t* label = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    TITAN_CHECK((label[i] >= 0 && label[i] < vocab_size) || label[i] == kIgnoredLabel, data,
                "label ", label[i], " of token ", i, " is outside of the vocabulary of ",
                vocab_size, " (", kIgnoredLabel, " marks a token that is ignored)");
}

}  // namespace titan::ops
