#include "adapter.h"

#include <utility>
#include <vector>

#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/ScalarType.h>

#include <titan/dist/collectives.h>
#include <titan/nn/cuts.h>

namespace titan::lora {
namespace {

class AdaptedKernel final : public nn::LinearKernel {
 public:
  AdaptedKernel(std::unique_ptr<nn::LinearKernel> base, std::shared_ptr<const Adapter> adapter,
                nn::Linear& a, nn::Linear& b)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        a_(a),
        b_(b),
        scale_(at::native::wrapped_scalar_tensor(adapter_->scale)) {}

  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override {
    const Batch nothing;  // linear layers do not use it
    const at::Tensor inner = a_(x, nothing) * scale_;
    return base_->matmul(x, weight) + b_(inner, nothing);
  }

 private:
  std::unique_ptr<nn::LinearKernel> base_;
  std::shared_ptr<const Adapter> adapter_;  // lives as long as the layer
  nn::Linear& a_;
  nn::Linear& b_;
  at::Tensor scale_;  // as an operand, which is not rounded to a narrow dtype of the activation
};

class AdaptedExperts final : public nn::GroupedLinearKernel {
 public:
  AdaptedExperts(std::unique_ptr<nn::GroupedLinearKernel> base,
                 std::shared_ptr<const Adapter> adapter, nn::GroupedLinear& a, nn::GroupedLinear& b)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        a_(a),
        b_(b),
        scale_(at::native::wrapped_scalar_tensor(adapter_->scale)) {}

  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight, at::IntArrayRef rows) override {
    const at::Tensor inner = a_(x, rows) * scale_;
    return base_->matmul(x, weight, rows) + b_(inner, rows);
  }

 private:
  std::unique_ptr<nn::GroupedLinearKernel> base_;
  std::shared_ptr<const Adapter> adapter_;  // lives as long as the layer
  nn::GroupedLinear& a_;
  nn::GroupedLinear& b_;
  at::Tensor scale_;  // as that of AdaptedKernel
};

/// Attaches `a` and `b` to `layer` and has `Kernel` compute with them.
template <class Kernel, class Layer>
std::shared_ptr<const Adapter> attach(Layer& layer, std::unique_ptr<Layer> a,
                                      std::unique_ptr<Layer> b, double scale) {
  const auto adapter = std::make_shared<const Adapter>(Adapter{a->weight(), b->weight(), scale});
  Layer &inner = *a, &outer = *b;
  layer.attach("lora_a", std::move(a));
  layer.attach("lora_b", std::move(b));
  layer.wrap_kernel("lora", [&](auto base) {
    return std::make_unique<Kernel>(std::move(base), adapter, inner, outer);
  });
  return adapter;
}

nn::Init init_of_a(int64_t rank) {
  return nn::Init::normal(0, 1.0 / static_cast<double>(rank));
}

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
  const at::ScalarType dtype = c10::promoteTypes(a.shard().scalar_type(), at::kFloat);
  const at::Tensor whole_a = gathered(a, mesh, dtype), whole_b = gathered(b, mesh, dtype);
  const size_t rows = slice.sizes.size() - 2, columns = rows + 1;  // dimensions of one matrix
  const auto product = [&](const at::Tensor& of_b, const at::Tensor& of_a) {
    return at::mm(of_b.narrow(0, slice.offsets[rows], slice.sizes[rows]),
                  of_a.narrow(1, slice.offsets[columns], slice.sizes[columns]));
  };
  if (rows == 0) return product(whole_b, whole_a) * scale;
  // one after the other: the bits of an expert do not depend on how many a rank has
  const at::Tensor all = at::empty(slice.sizes, whole_a.options());
  for (int64_t i = 0; i < slice.sizes[0]; ++i) {
    const int64_t expert = slice.offsets[0] + i;
    all.select(0, i).copy_(product(whole_b.select(0, expert), whole_a.select(0, expert)));
  }
  return all * scale;
}

std::shared_ptr<const Adapter> attach_adapter(nn::Linear& layer, int64_t rank, double scale) {
  const int64_t out = layer.weight().global_shape()[0], in = layer.weight().global_shape()[1];
  return attach<AdaptedKernel>(
      layer,
      std::make_unique<nn::Linear>(in, rank, layout_of(layer.layout(), nn::WeightLayout::row),
                                   init_of_a(rank)),
      std::make_unique<nn::Linear>(rank, out, layout_of(layer.layout(), nn::WeightLayout::column),
                                   nn::Init::constant(0)),
      scale);
}

std::shared_ptr<const Adapter> attach_adapter(nn::GroupedLinear& layer, int64_t rank,
                                              double scale) {
  const std::vector<int64_t>& shape = layer.weight().global_shape();  // (E, out, in)
  return attach<AdaptedExperts>(
      layer, std::make_unique<nn::GroupedLinear>(shape[0], shape[2], rank, init_of_a(rank)),
      std::make_unique<nn::GroupedLinear>(shape[0], rank, shape[1], nn::Init::constant(0)), scale);
}

}  // namespace titan::lora
