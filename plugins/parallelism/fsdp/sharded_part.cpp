#include "sharded_part.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include <titan/memory_use.h>

namespace titan::fsdp {
namespace {

void forget_arrivals(Unit& unit) {
  unit.num_arrived = 0;
  for (Member& member : unit.members) member.has_arrived = false;
}

/// Discards sums of microbatches that were not completed.
void forget_sums(Unit& unit) {
  unit.unreplicated.reset();
  for (Member& member : unit.members) member.accumulated.reset();
}

bool has_gradients(const Unit& unit) {
  for (const Member& member : unit.members)
    if (member.leaf.grad().defined() || member.accumulated.defined()) return true;
  return unit.unreplicated.defined();
}

/// Adds the leaf's gradient to the member's sum in the wider dtype and frees it.
void accumulate_in(at::ScalarType dtype, Member& member) {
  const MemoryUseScope use(MemoryUse::gradients);
  at::NoGradGuard no_grad;
  const at::Tensor gradient = std::exchange(member.leaf.mutable_grad(), at::Tensor());
  if (!gradient.defined()) return;
  if (member.accumulated.defined())
    member.accumulated.add_(gradient);
  else
    member.accumulated = gradient.to(dtype);
}

}  // namespace

std::shared_ptr<ShardedPart> ShardedPart::make(ModelPart& part, const Settings& settings) {
  std::shared_ptr<ShardedPart> made(new ShardedPart(part, settings));
  made->attach(part);
  return made;
}

ShardedPart::ShardedPart(ModelPart& part, const Settings& settings)
    : settings_(settings),
      copies_(settings_.device, SideStream::Priority::high),
      units_(make_units(part, settings_)),
      units_of_layer_(part.layers().size()),
      queue_(settings_) {
  for (size_t i = 0; i < units_.size(); ++i) {
    gathered_.emplace_back(units_[i], settings_, copies_);
    for (const size_t layer : units_[i].layers) units_of_layer_[layer].push_back(i);
  }
}

void ShardedPart::attach(ModelPart& part) {
  const std::shared_ptr<ShardedPart> self = shared_from_this();
  for (size_t i = 0; i < units_.size(); ++i)
    for (Member& member : units_[i].members)
      member.parameter->on_gradient(
          [self, i, &member](nn::Parameter&) { self->gradient_arrived(i, member); });
  for (size_t layer = 0; layer < part.layers().size(); ++layer)
    part.layers()[layer].module->wrap(
        [self, layer](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          return self->run_layer(layer, x, batch, next);
        });
}

void ShardedPart::start_gathers(size_t layer) {
  for (const size_t unit : units_of_layer_[layer]) gathered_[unit].start();
}

void ShardedPart::finish_gathers(size_t layer) {
  for (const size_t unit : units_of_layer_[layer]) gathered_[unit].finish();
}

bool ShardedPart::is_of(size_t unit, size_t layer) const {
  const std::vector<size_t>& units = units_of_layer_[layer];
  return std::find(units.begin(), units.end(), unit) != units.end();
}

bool ShardedPart::stays_whole_after(size_t unit, size_t layer) const {
  const bool is_last = layer + 1 == units_of_layer_.size();
  if (!is_last && is_of(unit, layer + 1)) return true;
  if (!at::GradMode::is_enabled()) return false;  // without a backward that would free it
  return settings_.reshard == Reshard::never ||
         (settings_.reshard == Reshard::all_but_last && is_last);
}

at::Tensor ShardedPart::run_layer(size_t layer, const at::Tensor& x, const Batch& batch,
                                  const nn::Next& next) {
  finish_gathers(layer);
  if (layer + 1 < units_of_layer_.size()) start_gathers(layer + 1);
  const bool is_cast =
      x.defined() && x.is_floating_point() && x.scalar_type() != settings_.param_dtype;
  const at::Tensor y = next(is_cast ? x.to(settings_.param_dtype) : x, batch);
  for (const size_t unit : units_of_layer_[layer])
    if (!stays_whole_after(unit, layer)) gathered_[unit].release();
  if (y.requires_grad()) {
    const bool has_layer_before = layer > 0 && x.defined() && x.requires_grad();
    y.register_hook([self = shared_from_this(), layer, has_layer_before](const at::Tensor&) {
      self->before_backward(layer, has_layer_before);
    });
  }
  return y;
}

/// Called when the backward of the next layer is done.
void ShardedPart::before_backward(size_t layer, bool has_layer_before) {
  finish_gathers(layer);
  if (has_layer_before) start_gathers(layer - 1);
  if (layer + 1 == units_of_layer_.size() || !is_freed_in_backward()) return;
  for (const size_t behind : units_of_layer_[layer + 1])
    if (!is_of(behind, layer) && units_[behind].has_frozen()) gathered_[behind].release();
}

bool ShardedPart::is_freed_in_backward() const {
  return is_last_microbatch_ || settings_.reshard != Reshard::never;
}

void ShardedPart::gradient_arrived(size_t unit, Member& member) {
  const bool is_kept = !is_last_microbatch_ && !settings_.sum_each_microbatch;
  const bool is_narrow =
      settings_.param_dtype != settings_.reduce_dtype &&
      c10::promoteTypes(settings_.param_dtype, settings_.reduce_dtype) == settings_.reduce_dtype;
  if (is_kept && is_narrow) accumulate_in(settings_.reduce_dtype, member);
  if (!std::exchange(member.has_arrived, true)) ++units_[unit].num_arrived;
  if (units_[unit].num_arrived == units_[unit].num_trainable) all_gradients_arrived(unit);
}

void ShardedPart::all_gradients_arrived(size_t unit) {
  forget_arrivals(units_[unit]);
  if (!units_[unit].has_frozen() && is_freed_in_backward()) gathered_[unit].release();
  if (is_last_microbatch_ || settings_.sum_each_microbatch)
    queue_.add(units_[unit], is_last_microbatch_);
}

void ShardedPart::begin_step() {
  queue_.abandon();
  for (GatheredUnit& weights : gathered_) weights.release();
  for (Unit& unit : units_) forget_sums(unit);
}

void ShardedPart::start_microbatch(bool is_last) {
  is_last_microbatch_ = is_last;
  for (Unit& unit : units_) forget_arrivals(unit);
}

void ShardedPart::finish_gradients() {
  queue_.flush();  // gradients that units still hold belong to incomplete units
  for (size_t i = units_.size(); i-- > 0;) {
    gathered_[i].release();
    forget_arrivals(units_[i]);
    if (has_gradients(units_[i])) queue_.add(units_[i], /*completes_step=*/true);
  }
  queue_.flush();
  queue_.synchronize();
}

}  // namespace titan::fsdp
