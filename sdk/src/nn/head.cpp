#include <titan/nn/head.h>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::nn {
namespace {

class PlainHeadKernel final : public HeadKernel {
 public:
  at::Tensor logits(const at::Tensor& x, Parameter& weight) override {
    return ops::linear(x, weight.value());
  }
  at::Tensor loss_sum(const at::Tensor& x, Parameter& weight, const at::Tensor& labels) override {
    return ops::linear_cross_entropy(x, weight.value(), labels);
  }
  at::Tensor loss_sum_by(const ops::ChunkLoss& loss, const at::Tensor& x, Parameter& weight,
                         const at::Tensor& labels) override {
    const at::Tensor& value = weight.value();
    return ops::chunked_loss(x, value, labels,
                             ops::chunk_rows(x.size(0), value.size(0), ops::kComposedLogitsBytes),
                             loss);
  }
};

/// The loss of a chunk, whose logits become their gradient. Its graph lives here alone.
at::Tensor loss_of_chunk(const HeadLoss& by, const at::Tensor& logits, const at::Tensor& labels,
                         bool gradient) {
  const at::AutoGradMode grad_mode(gradient);
  const at::Tensor leaf = logits.detach().requires_grad_(gradient);
  const RowsLoss rows = by.loss->of_rows(leaf, labels);
  TITAN_CHECK(rows.sum.defined() && rows.sum.numel() == 1, plugin,
              "the loss gives no single number for ", labels.size(0), " rows");
  const size_t num_parts = by.loss->part_names().size();
  TITAN_CHECK(rows.parts.size() == num_parts, plugin, "the loss gives ", rows.parts.size(),
              " parts and names ", num_parts);
  if (gradient && rows.sum.requires_grad())
    logits.detach().copy_(torch::autograd::grad({rows.sum.sum()}, {leaf})[0]);
  else if (gradient)
    logits.detach().zero_();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : rows.parts) parts.push_back(part.detach().sum());
  if (by.take_parts) by.take_parts(parts);
  return rows.sum.detach().sum().to(at::kDouble);
}

}  // namespace

HeadKernel::~HeadKernel() = default;

OutputHead::OutputHead(const OutputHeadOptions& options)
    : norm_(add_module("norm", std::make_unique<RmsNorm>(options.dim, options.norm_eps))),
      kernel_(std::make_unique<PlainHeadKernel>()) {
  if (options.tied_weight) {
    weight_ = options.tied_weight;
    borrow_parameter(weight_);
  } else {
    add_parameter("output.weight", {options.vocab_size, options.dim}, options.init);
    weight_ = shared_parameter("output.weight");
  }
}

OutputHead::~OutputHead() = default;

void OutputHead::set_kernel(std::string taker, std::unique_ptr<HeadKernel> kernel) {
  check_runs(taker, "the output head");
  kernel_.replace(std::move(taker), std::move(kernel), "the output head");
}

void OutputHead::wrap_kernel(std::string taker, const KernelAround<HeadKernel>& around) {
  check_runs(taker, "the output head");
  kernel_.wrap(std::move(taker), around, "the output head");
}

at::Tensor OutputHead::forward(const at::Tensor& x, const Batch& batch) {
  at::Tensor normalized = norm_(x, batch);  // of all tokens, where the sequence is cut
  if (!batch.labels.defined() && batch.logits_of.defined())
    normalized =
        normalized.reshape({-1, normalized.size(-1)}).index_select(0, batch.logits_of).unsqueeze(0);
  if (!batch.labels.defined()) return kernel_->logits(normalized, *weight_).to(at::kFloat);
  const at::Tensor rows = normalized.reshape({-1, normalized.size(-1)});
  const at::Tensor labels = batch.labels.reshape({-1});
  if (!loss_.loss) return kernel_->loss_sum(rows, *weight_, labels);
  ops::check_labels(labels, weight_->global_shape()[0]);
  return kernel_->loss_sum_by(
      [this](const at::Tensor& logits, const at::Tensor& of_chunk, bool gradient) {
        return loss_of_chunk(loss_, logits, of_chunk, gradient);
      },
      rows, *weight_, labels);
}

}  // namespace titan::nn
