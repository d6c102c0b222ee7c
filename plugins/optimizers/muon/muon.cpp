#include "muon.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/name_pattern.h>

#include "../common/number.h"

namespace titan::muon {
namespace {

/// Matrices of equal keys share exchanges: the global shape, and (dim, group) of each sharding.
using FamilyKey = std::pair<std::vector<int64_t>, std::vector<std::pair<int64_t, std::string>>>;

FamilyKey key_of(const Parameter& matrix) {
  FamilyKey key{matrix.global_shape(), {}};
  for (const nn::Sharding& sharding : matrix.shardings())
    key.second.emplace_back(sharding.dim, sharding.group);
  return key;
}

bool is_stack(const Parameter& parameter) {
  return parameter.global_shape().size() == 3;
}

bool is_matrix_or_stack(const Parameter& parameter) {
  return parameter.global_shape().size() == 2 || is_stack(parameter);
}

at::ScalarType iteration_dtype(IterationDtype dtype, c10::Device device) {
  const bool is_wide =
      dtype == IterationDtype::float32 || (dtype == IterationDtype::automatic && device.is_cpu());
  return is_wide ? at::kFloat : at::kBFloat16;
}

}  // namespace

Muon::Muon(const MuonOptions& options, const OptimizerContext& context) : options_(options) {
  TITAN_CHECK(options.ns_coefficients.size() == 3, config,
              "optimizer.ns_coefficients must hold the 3 coefficients of a x + b x^3 + c x^5, got ",
              options.ns_coefficients.size(), " of them");
  std::copy(options.ns_coefficients.begin(), options.ns_coefficients.end(),
            newton_schulz_.coefficients.begin());
  newton_schulz_.num_steps = options.ns_steps;
  newton_schulz_.eps = options.eps;

  std::vector<Parameter*> others;
  std::map<FamilyKey, size_t> known;
  for (Parameter* parameter : context.parameters) {
    if (!is_matrix_or_stack(*parameter) || matches_any(parameter->name(), options.adamw_patterns)) {
      others.push_back(parameter);
      continue;
    }
    const auto [family, is_new] = known.emplace(key_of(*parameter), families_.size());
    if (is_new) families_.push_back({MatrixExchange(*parameter, context.mesh), {}});
    families_[family->second].members.push_back(matrices_.size());
    matrices_.push_back(parameter);
  }
  buffers_ = &add_state("momentum_buffer", matrices_);
  adamw_ = std::make_unique<optimizers::AdamUpdate>(
      optimizers::AdamSettings{.factors = {options.adamw_beta1, options.adamw_beta2,
                                           options.adamw_eps, options.adamw_weight_decay}},
      others, context.seed, *this);
}

void Muon::step(double lr_factor) {
  at::NoGradGuard no_grad;
  for (const Family& family : families_) step_family(family, options_.lr * lr_factor);
  adamw_->step(options_.adamw_lr * lr_factor);
}

void Muon::step_family(const Family& family, double lr) {
  std::vector<size_t> members;
  for (const size_t member : family.members)
    if (matrices_[member]->grad().defined()) members.push_back(member);
  if (members.empty()) return;
  if (!is_stack(*matrices_[members.front()])) return step_matrices(family, members, lr);
  for (const size_t member : members) step_stack(family, member, lr);
}

void Muon::step_matrices(const Family& family, const std::vector<size_t>& members, double lr) {
  const size_t batch_size = family.exchange.batch_size();
  for (size_t begin = 0; begin < members.size(); begin += batch_size) {
    const size_t count = std::min(batch_size, members.size() - begin);
    std::vector<at::Tensor> slices;
    for (size_t i = 0; i < count; ++i) slices.push_back(update_of(members[begin + i]));
    slices = family.exchange.transform(std::exchange(slices, {}), [&](const at::Tensor& whole) {
      return orthogonalize(whole, newton_schulz_);
    });
    for (size_t i = 0; i < count; ++i) move(members[begin + i], slices[i], lr);
  }
}

void Muon::step_stack(const Family& family, size_t index, double lr) {
  const at::Tensor updates = update_of(index).contiguous();  // of this rank's matrices
  if (!family.exchange.is_cut())
    return move(index, orthogonalize_each(updates, newton_schulz_), lr);
  const auto batch_size = static_cast<int64_t>(family.exchange.batch_size());
  const std::vector<int64_t>& shape = matrices_[index]->global_shape();
  const at::Tensor directions = empty_directions(updates, {shape[1], shape[2]});
  for (int64_t begin = 0; begin < updates.size(0); begin += batch_size) {
    const int64_t count = std::min(batch_size, updates.size(0) - begin);
    const std::vector<at::Tensor> slices = family.exchange.transform(
        updates.narrow(0, begin, count).unbind(0),
        [&](const at::Tensor& whole) { return orthogonalize(whole, newton_schulz_); });
    for (int64_t i = 0; i < count; ++i)
      directions.select(0, begin + i).copy_(slices[static_cast<size_t>(i)]);
  }
  move(index, directions, lr);
}

void Muon::move(size_t index, const at::Tensor& direction, double lr) {
  const Parameter& parameter = *matrices_[index];
  at::Tensor weight = parameter.shard();
  weight.mul_(optimizers::number(1 - lr * options_.weight_decay));
  weight.add_(direction, -adjusted(lr, parameter.global_shape()));
}

/// The update of this rank's slice, before orthogonalization, in the dtype of the iteration.
at::Tensor Muon::update_of(size_t index) {
  const at::Tensor gradient = matrices_[index]->grad();
  const at::Tensor& buffer = (*buffers_)[index];
  buffer.lerp_(gradient, 1 - options_.momentum);
  const at::Tensor update = options_.nesterov ? gradient.lerp(buffer, options_.momentum) : buffer;
  return update.to(iteration_dtype(options_.ns_dtype, update.device()));
}

double Muon::adjusted(double lr, const std::vector<int64_t>& shape) const {
  const size_t last = shape.size() - 1;
  const auto rows = static_cast<double>(shape[last - 1]),
             columns = static_cast<double>(shape[last]);
  if (options_.adjust_lr == AdjustLr::original)
    return lr * std::sqrt(std::max(1.0, rows / columns));
  return lr * (0.2 * std::sqrt(std::max(rows, columns)));
}

}  // namespace titan::muon
