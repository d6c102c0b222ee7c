#include "soap.h"

#include <cmath>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/trace.h>

#include <titan/dist/collectives.h>
#include <titan/nn/cuts.h>

namespace soap {
namespace {

using at::Tensor;

constexpr const char* kSides[] = {"left", "right"};
constexpr double kRamp = 1e-3;  // of the mean of the diagonal

/// The whole tensors of which each rank holds slices, along the dimensions that `cuts` shard.
Tensor gathered(Tensor slices, const std::vector<titan::nn::Cut>& cuts) {
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut)
    if (cut->group.size() > 1)
      slices = titan::dist::all_gather_replicated(slices.contiguous(), cut->dim + 1, cut->group, cut->chunk.full);
  return slices;
}

/// This rank's slice of a whole matrix.
Tensor sliced(Tensor whole, const titan::Parameter& parameter) {
  const titan::nn::Slice& slice = parameter.slice();
  for (int64_t dim = 0; dim < whole.dim(); ++dim)
    whole = whole.narrow(dim, slice.offsets[dim], slice.sizes[dim]);
  return whole;
}

/// The eigenvectors, largest first. One gradient leaves a null space, in which any basis would do,
/// so that ranks or layouts could disagree: a small ramp on the diagonal makes the basis unique.
Tensor first_basis(const Tensor& mean) {
  const int64_t size = mean.size(0);
  const Tensor ramp = at::linspace(1, 0, size, mean.options()).mul_(mean.trace() * (kRamp / static_cast<double>(size)));
  return std::get<1>(at::linalg_eigh(mean + at::diag(ramp))).flip(1);
}

/// One power iteration and a QR decomposition, after sorting the columns by their eigenvalues;
/// `order` is that of the new columns.
Tensor next_basis(const Tensor& mean, const Tensor& basis, Tensor& order) {
  order = at::argsort((basis.t().mm(mean).mm(basis)).diagonal(), /*dim=*/-1, /*descending=*/true);
  return std::get<0>(at::linalg_qr(mean.mm(basis.index_select(1, order))));
}

}  // namespace

Soap::Soap(const SoapOptions& options, const titan::OptimizerContext& context)
    : options_(options),
      mesh_(context.mesh),
      parameters_(context.parameters),
      mean_(add_state("exp_avg", parameters_)),
      square_(add_state("exp_avg_sq", parameters_)),
      steps_(add_state("step", parameters_, {.is_number = true})) {
  for (const int dim : {0, 1}) {
    for (titan::Parameter* parameter : parameters_) {
      const std::vector<int64_t>& shape = parameter->global_shape();
      const bool has_basis = shape.size() == 2 && shape[dim] <= options.max_precond_dim;
      place_[dim].push_back(has_basis ? std::optional(of_side_[dim].size()) : std::nullopt);
      if (has_basis) of_side_[dim].push_back(parameter);
    }
    const titan::StateForm square = {.whole_shape = [dim](const titan::Parameter& parameter) {
      return std::vector<int64_t>(2, parameter.global_shape()[dim]);
    }};
    means_[dim] = &add_state(std::string(kSides[dim]) + "_mean", of_side_[dim], square);
    bases_[dim] = &add_state(std::string(kSides[dim]) + "_basis", of_side_[dim], square);
  }
}

std::optional<Soap::Side> Soap::side(size_t index, int dim) {
  const std::optional<size_t> place = place_[dim][index];
  if (!place) return {};
  return Side{(*means_[dim])[*place], (*bases_[dim])[*place]};
}

void Soap::step(double lr_factor) {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i]->grad().defined()) update(i, options_.lr * lr_factor);
}

void Soap::update_means(const Tensor& g, std::optional<Side>& left, std::optional<Side>& right) {
  const double share = 1 - options_.shampoo_beta.value_or(options_.beta2);
  if (left) left->mean.lerp_(g.mm(g.t()), share);
  if (right) right->mean.lerp_(g.t().mm(g), share);
}

void Soap::update(size_t index, double lr) {
  const SoapOptions& o = options_;
  const titan::Parameter& parameter = *parameters_[index];
  std::optional<Side> left = side(index, 0), right = side(index, 1);
  const bool has_basis = left || right;

  // gradient and running means; of a matrix with a basis whole on every rank
  Tensor g = parameter.grad(), m = mean_[index], v = square_[index];
  if (has_basis) {
    const std::vector<Tensor> whole =
        gathered(at::stack({g, m, v}), titan::nn::cuts_of(parameter, mesh_)).unbind();
    g = whole[0], m = whole[1].clone(), v = whole[2].clone();
  }

  const Tensor& count = steps_[index].add_(1);
  const double t = count.is_meta() ? 1 : count.item<double>() - 1;  // meta: a simulated step
  if (t == 0) {
    update_means(g, left, right);
    for (auto* one : {&left, &right})
      if (*one) (*one)->basis.copy_(first_basis((*one)->mean));
    return;
  }

  const auto rotated = [&](Tensor x) {
    if (left) x = left->basis.t().mm(x);
    return right ? x.mm(right->basis) : x;
  };
  m.lerp_(g, 1 - o.beta1);
  v.mul_(o.beta2).add_(rotated(g).square(), 1 - o.beta2);
  Tensor direction = rotated(m) / (v.sqrt() + o.eps);
  if (left) direction = left->basis.mm(direction);
  if (right) direction = direction.mm(right->basis.t());
  const double size = lr * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
  Tensor weight = parameter.shard();
  weight.sub_(has_basis ? sliced(direction, parameter) : direction, size).mul_(1 - lr * o.weight_decay);
  if (!has_basis) return;

  update_means(g, left, right);
  if (static_cast<int64_t>(t) % o.precondition_frequency == 0) {
    int64_t dim = 0;
    for (auto* one : {&left, &right}) {
      if (*one) {
        Tensor order;
        const Tensor basis = next_basis((*one)->mean, (*one)->basis, order);
        (*one)->basis.copy_(basis);
        v = v.index_select(dim, order);
      }
      ++dim;
    }
  }
  mean_[index].copy_(sliced(m, parameter));
  square_[index].copy_(sliced(v, parameter));
}

}  // namespace soap
