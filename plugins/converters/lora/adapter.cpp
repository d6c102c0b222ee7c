#include "adapter.h"

#include <utility>
#include <vector>

#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <c10/core/ScalarType.h>

#include <titan/dist/collectives.h>
#include <titan/nn/cuts.h>

namespace titan::lora {
namespace {

class AdaptedKernel final : public nn::LinearKernel {
 public:
  AdaptedKernel(std::unique_ptr<nn::LinearKernel> base, std::shared_ptr<const Adapter> adapter)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        scale_(at::native::wrapped_scalar_tensor(adapter_->scale)) {}

  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override {
    const Batch nothing;  // of which linear layers need none
    const at::Tensor inner = adapter_->a(x, nothing) * scale_;
    return base_->matmul(x, weight) + adapter_->b(inner, nothing);
  }

 private:
  std::unique_ptr<nn::LinearKernel> base_;
  std::shared_ptr<const Adapter> adapter_;
  at::Tensor scale_;  // as an operand, which is not rounded to a narrow dtype of the activation
};

/// The whole parameter out of the shards of all ranks, in `dtype`.
at::Tensor gathered(const nn::Parameter& parameter, const dist::Mesh& mesh, at::ScalarType dtype) {
  const std::vector<nn::Cut> cuts = nn::cuts_of(parameter, &mesh);
  at::Tensor whole = parameter.shard().detach().to(dtype);
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut)
    whole = dist::all_gather_replicated(whole.contiguous(), cut->dim, cut->group, cut->chunk.full);
  return whole;
}

nn::WeightLayout layout_of(nn::WeightLayout base, nn::WeightLayout cut) {
  return base == cut ? cut : nn::WeightLayout::replicated;
}

}  // namespace

at::Tensor Adapter::delta(const nn::Slice& slice, const dist::Mesh& mesh) const {
  at::NoGradGuard no_grad;
  const at::ScalarType dtype = c10::promoteTypes(a.weight().shard().scalar_type(), at::kFloat);
  const at::Tensor whole_a = gathered(a.weight(), mesh, dtype);
  const at::Tensor whole_b = gathered(b.weight(), mesh, dtype);
  return at::mm(whole_b.narrow(0, slice.offsets[0], slice.sizes[0]),
                whole_a.narrow(1, slice.offsets[1], slice.sizes[1])) *
         scale;
}

std::shared_ptr<const Adapter> attach_adapter(nn::Linear& layer, int64_t rank, double scale) {
  const int64_t out = layer.weight().global_shape()[0], in = layer.weight().global_shape()[1];
  auto a = std::make_unique<nn::Linear>(in, rank, layout_of(layer.layout(), nn::WeightLayout::row),
                                        nn::Init::normal(0, 1.0 / static_cast<double>(rank)));
  auto b = std::make_unique<nn::Linear>(
      rank, out, layout_of(layer.layout(), nn::WeightLayout::column), nn::Init::constant(0));
  const auto adapter = std::make_shared<const Adapter>(Adapter{*a, *b, scale});
  layer.attach("lora_a", std::move(a));
  layer.attach("lora_b", std::move(b));
  layer.wrap_kernel("lora", [&](std::unique_ptr<nn::LinearKernel> base) {
    return std::make_unique<AdaptedKernel>(std::move(base), adapter);
  });
  return adapter;
}

}  // namespace titan::lora
