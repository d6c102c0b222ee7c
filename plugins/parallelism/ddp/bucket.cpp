#include "bucket.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <titan/error.h>

namespace titan::ddp {

void Bucket::add(nn::Parameter& parameter) {
  const int64_t num_elements = parameter.shard().numel();
  slots_.push_back(
      {.parameter = &parameter, .offset = num_elements_, .num_elements = num_elements});
  num_elements_ += num_elements;
}

void Bucket::take(size_t index) {
  at::NoGradGuard no_grad;
  Slot& slot = slots_[index];
  const at::Tensor& value = slot.parameter->value();
  TITAN_ASSERT(!is_started_, "a gradient of '", slot.parameter->name(),
               "' came after the microbatch that was announced as the last");
  if (!flat_.defined()) {
    const at::ScalarType wider = c10::promoteTypes(value.scalar_type(), reduce_dtype_);
    const bool is_narrow = wider == reduce_dtype_;  // else in the gradients' dtype
    flat_ =
        at::empty({num_elements_}, value.options().dtype(is_narrow ? wider : value.scalar_type()));
  }
  at::Tensor place = flat_.narrow(0, slot.offset, slot.num_elements).view(value.sizes());
  const at::Tensor gradient = std::exchange(value.mutable_grad(), at::Tensor());
  if (slot.is_taken) {
    if (gradient.defined()) place.add_(gradient);
    return;
  }
  if (gradient.defined())
    place.copy_(gradient);
  else
    place.zero_();
  slot.is_taken = true;
  ++num_taken_;
}

void Bucket::start(const dist::Group& group) {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (!slots_[i].is_taken) take(i);
  pending_ = group.all_reduce(flat_, dist::Reduce::sum);
  is_started_ = true;
}

void Bucket::finish() {
  pending_.wait();
  if (flat_.defined()) flat_ = flat_.to(slots_.front().parameter->value().scalar_type());
  for (const Slot& slot : slots_) {
    const at::Tensor& value = slot.parameter->value();
    value.mutable_grad() = flat_.narrow(0, slot.offset, slot.num_elements).view(value.sizes());
  }
  abandon();
  for (const Slot& slot : slots_) slot.parameter->complete_gradient();
}

void Bucket::abandon() {
  pending_.wait();
  pending_ = {};
  flat_.reset();
  is_started_ = false;
  num_taken_ = 0;
  for (Slot& slot : slots_) slot.is_taken = false;
}

}  // namespace titan::ddp
