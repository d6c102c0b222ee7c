#include <titan/nn/head.h>

#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>

#include "head_loss.h"

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

void OutputHead::set_kernel(std::string owner, std::unique_ptr<HeadKernel> kernel) {
  check_runs(owner, "the output head");
  kernel_.replace(std::move(owner), std::move(kernel), "the output head");
}

void OutputHead::wrap_kernel(std::string owner, const KernelAround<HeadKernel>& around) {
  check_runs(owner, "the output head");
  kernel_.wrap(std::move(owner), around, "the output head");
}

at::Tensor OutputHead::forward(const at::Tensor& x, const Batch& batch) {
  at::Tensor normalized = norm_(x, batch);  // of all tokens, even if the sequence is sharded
  if (!batch.labels.defined() && batch.logits_of.defined())
    normalized =
        normalized.reshape({-1, normalized.size(-1)}).index_select(0, batch.logits_of).unsqueeze(0);
  if (!batch.labels.defined()) return kernel_->logits(normalized, *weight_).to(at::kFloat);
  const at::Tensor rows = normalized.reshape({-1, normalized.size(-1)});
  const at::Tensor labels = batch.labels.reshape({-1});
  if (!loss_.loss) return kernel_->loss_sum(rows, *weight_, labels);
  ops::check_labels(labels, weight_->global_shape()[0]);
  const auto sum = [&](const ops::ChunkLoss& of_chunk) {
    return kernel_->loss_sum_by(of_chunk, rows, *weight_, labels);
  };
  return loss_by_component(*loss_.loss, {sum, loss_.take_parts}, batch);
}

}  // namespace titan::nn
