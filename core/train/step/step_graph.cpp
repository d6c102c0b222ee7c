#include "core/train/step/step_graph.h"

#include <algorithm>
#include <exception>

#include <titan/log.h>

namespace titan::core {
namespace {

/// Whether a batch has only tokens and labels, which can be copied into the recorded tensors.
bool is_plain(const Batch& batch) {
  return batch.labels.defined() && !batch.positions.defined() && !batch.documents.defined() &&
         !batch.is_padding.defined() && !batch.reference.defined() && !batch.kv_cache &&
         !batch.logits_of.defined();
}

bool are_plain(const StepBatches& batches) {
  return batches.gradient_scale == 1 &&
         std::all_of(batches.microbatches.begin(), batches.microbatches.end(), is_plain);
}

}  // namespace

std::optional<at::Tensor> StepGraph::run(const StepBatches& batches, const Work& work) {
  if (is_given_up_ || !are_plain(batches)) return std::nullopt;
  if (graph_) return is_like_recorded(batches) ? std::optional(replay(batches)) : std::nullopt;
  num_alike_ = is_like_recorded(batches) ? num_alike_ + 1 : 1;
  inputs_ = batches.microbatches;
  num_valid_tokens_ = batches.num_valid_tokens;
  if (num_alike_ <= kStepsBefore) return std::nullopt;
  if (!record(batches, work)) return std::nullopt;
  return replay(batches);
}

bool StepGraph::is_like_recorded(const StepBatches& batches) const {
  const auto alike = [](const Batch& a, const Batch& b) {
    return a.tokens.sizes() == b.tokens.sizes() && a.labels.sizes() == b.labels.sizes() &&
           a.num_positions == b.num_positions && a.places.first_row == b.places.first_row;
  };
  return batches.num_valid_tokens == num_valid_tokens_ &&
         std::equal(inputs_.begin(), inputs_.end(), batches.microbatches.begin(),
                    batches.microbatches.end(), alike);
}

/// False if the step cannot be recorded; no later step tries again.
bool StepGraph::record(const StepBatches& batches, const Work& work) {
  for (Batch& input : inputs_) {
    input = input.to(device_);
    for (at::Tensor* tensor : {&input.tokens, &input.labels}) *tensor = tensor->clone();
  }
  try {
    graph_ = graphs_.capture([&] {
      part_.clear_gradients();
      sum_ = work(inputs_, batches.num_valid_tokens);
    });
  } catch (const std::exception& error) {
    log::warn(std::string("forward and backward are not replayed as a graph: ") + error.what());
    is_given_up_ = true;
  }
  for (nn::Parameter* parameter : part_.parameters())
    if (!is_given_up_ && parameter->grad().defined())
      gradients_.emplace_back(parameter, parameter->grad());
  part_.clear_gradients();
  if (is_given_up_) sum_ = at::Tensor(), inputs_.clear();
  return !is_given_up_;
}

at::Tensor StepGraph::replay(const StepBatches& batches) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Batch batch = batches.microbatches[i].to(device_);
    inputs_[i].tokens.copy_(batch.tokens, /*non_blocking=*/true);
    inputs_[i].labels.copy_(batch.labels, /*non_blocking=*/true);
  }
  graph_->replay();
  for (const auto& [parameter, gradient] : gradients_) {
    at::Tensor shard = parameter->shard();
    shard.mutable_grad() = gradient;
  }
  return sum_.clone();  // the next replay overwrites it
}

}  // namespace titan::core
