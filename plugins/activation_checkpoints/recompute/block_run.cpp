#include "block_run.h"

#include <cstdio>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/graph_task.h>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/memory_use.h>

#include "random_state.h"

namespace titan::recompute {
namespace {

/// Thrown to end the recomputation early; caught in this file.
struct EverythingIsMade {};

class Dropped final : public nn::SavedTensor {
 public:
  Dropped(std::shared_ptr<BlockRun> run, size_t index) : run_(std::move(run)), index_(index) {}
  at::Tensor unpack() override { return run_->take(index_); }

 private:
  std::shared_ptr<BlockRun> run_;
  size_t index_;
};

}  // namespace

BlockRun::BlockRun(std::shared_ptr<Block> block, const at::Tensor& input, const Batch& batch,
                   nn::Next forward)
    : block_(std::move(block)),
      input_(input.detach()),
      input_version_(input._version()),
      input_requires_grad_(input.requires_grad()),
      batch_(batch),
      forward_(std::move(forward)),
      weight_gradients_(nn::WeightGradientQueue::current()) {
  if (block_->settings.preserve_rng_state)
    generator_states_ = random_states(block_->settings.device);
  hold(input_);
  for (const at::Tensor* tensor :
       {&batch_.tokens, &batch_.labels, &batch_.positions, &batch_.documents, &batch_.is_padding})
    if (tensor->defined()) hold(*tensor);
  for (nn::Parameter* parameter : block_->parameters) hold(parameter->value());
}

BlockRun::~BlockRun() = default;

at::Tensor BlockRun::forward(const at::Tensor& input) {
  const nn::SavedTensorScope saved(this);
  const RecomputeScope::Entry entry(this);
  at::Tensor output = forward_(input, batch_);
  if (block_->settings.debug && !std::exchange(block_->was_described, true)) describe();
  return output;
}

BlockRun::Shape BlockRun::shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

bool BlockRun::is_at_hand(const at::Tensor& tensor) const {
  return at_hand_.contains(tensor.storage().unsafeGetStorageImpl());
}

std::unique_ptr<nn::SavedTensor> BlockRun::pack(const at::Tensor& tensor) {
  if (pass_ == Pass::again) {
    save_again(tensor);
    return std::make_unique<nn::HeldTensor>(at::Tensor());  // this graph has no backward
  }
  ++num_saved_;
  if (is_at_hand(tensor)) return std::make_unique<nn::HeldTensor>(tensor);
  dropped_.push_back(shape_of(tensor));
  return std::make_unique<Dropped>(shared_from_this(), dropped_.size() - 1);
}

std::vector<at::Tensor> BlockRun::run(const Operation& operation, const Compute& compute) {
  operations_.push_back(operation);
  return pass_ == Pass::first ? run_first(operation, compute) : run_again(operation, compute);
}

std::vector<at::Tensor> BlockRun::run_first(const Operation& operation, const Compute& compute) {
  Result result{.operation = operation, .num_saved_before = num_saved_};
  std::vector<at::Tensor> tensors = compute();
  const bool is_kept =
      operation.kind == Operation::Kind::routing || block_->policy->keeps(operations_);
  for (const at::Tensor& tensor : tensors) {
    result.shapes.push_back(shape_of(tensor));
    if (!is_kept) continue;
    result.kept.push_back(tensor.detach());  // detached: the tensor itself gets a history
    result.versions.push_back(tensor._version());
    hold(tensor);
  }
  results_.push_back(std::move(result));
  return tensors;
}

/// Whether backward needs nothing of the result: the operation's own inputs were the last saved
/// tensors.
bool BlockRun::is_needed_by_nobody(const Result& result) const {
  return block_->settings.early_stop && result.operation.num_saved_inputs > 0 &&
         num_saved_ - result.num_saved_before ==
             static_cast<size_t>(result.operation.num_saved_inputs);
}

std::vector<at::Tensor> BlockRun::run_again(const Operation& operation, const Compute& compute) {
  const size_t place = operations_.size() - 1;
  TITAN_CHECK(
      place < results_.size() && results_[place].operation.kind == operation.kind, config,
      "its second run has other operations than its first; use activation_checkpoint.mode = "
      "\"none\" for layers that are not deterministic");
  const Result& result = results_[place];
  std::vector<at::Tensor> tensors;
  if (!result.kept.empty()) {
    for (size_t i = 0; i < result.kept.size(); ++i) {
      TITAN_CHECK(result.kept[i]._version() == result.versions[i], config,
                  "a kept result has been changed in place");
      tensors.push_back(result.kept[i].detach());
    }
    return tensors;
  }
  if (is_needed_by_nobody(result)) {
    const at::TensorOptions options = at::TensorOptions().device(block_->settings.device);
    for (const Shape& shape : result.shapes)
      tensors.push_back(at::empty_strided(shape.sizes, shape.strides, options.dtype(shape.dtype)));
    return tensors;
  }
  add_recomputed(operation.flops);
  return compute();
}

void BlockRun::save_again(const at::Tensor& tensor) {
  if (is_at_hand(tensor)) return;
  again_.push_back(tensor);
  if (block_->settings.early_stop && again_.size() == dropped_.size()) throw EverythingIsMade();
}

at::Tensor BlockRun::take(size_t index) {
  // With retain_graph a later backward unpacks the tensors again.
  const bool is_last_time = !torch::autograd::get_current_graph_task_keep_graph();
  if (!is_made_again_) {
    try {
      run_forward_again();
    } catch (Error& e) {
      e.with_context("while recomputing " + block_->name + " for its backward");
      throw;
    }
    if (is_last_time) {  // not needed any more
      input_.reset();
      batch_ = {};
      results_.clear();
      forward_ = nullptr;
    }
  }
  return is_last_time ? std::exchange(again_[index], at::Tensor()) : again_[index];
}

void BlockRun::run_forward_again() {
  TITAN_CHECK(input_.defined() && input_._version() == input_version_, config,
              "the input of the layer has been changed in place since its forward");
  pass_ = Pass::again;
  operations_.clear();
  again_.clear();
  const nn::SavedTensorScope saved(this);
  const RecomputeScope::Entry entry(this);
  const nn::WeightGradientQueue::Scope queue(weight_gradients_);
  const MemoryUseScope use(MemoryUse::activations);
  const SameRandomNumbers random(block_->settings.device, generator_states_);
  const at::AutoGradMode recording(true);
  try {
    forward_(input_.detach().set_requires_grad(input_requires_grad_), batch_);
  } catch (const EverythingIsMade&) {
  }
  check_again_as_before();
  is_made_again_ = true;
}

void BlockRun::check_again_as_before() const {
  TITAN_CHECK(again_.size() == dropped_.size(), config, "its forward saved ", dropped_.size(),
              " tensors the first time and ", again_.size(), " the second time");
  if (!block_->settings.checks_determinism) return;
  for (size_t i = 0; i < again_.size(); ++i) {
    const Shape &before = dropped_[i], now = shape_of(again_[i]);
    TITAN_CHECK(before.sizes == now.sizes && before.dtype == now.dtype, config, "saved tensor ", i,
                " was ", before.dtype, " ", at::IntArrayRef(before.sizes),
                " the first time and is ", now.dtype, " ", at::IntArrayRef(now.sizes), " now");
  }
}

void BlockRun::describe() const {
  double flops = 0;
  size_t num_kept = 0;
  int64_t bytes = 0;
  for (const Result& result : results_) {
    if (result.kept.empty() && !is_needed_by_nobody(result)) flops += result.operation.flops;
    if (!result.kept.empty()) ++num_kept;
    for (const at::Tensor& tensor : result.kept) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  char text[200];
  std::snprintf(text, sizeof text,
                ": keeps its input (%.3f MiB) and %zu of %zu results (%.3f MiB), drops %zu saved "
                "tensors, recomputes %.4g FLOP",
                static_cast<double>(input_.nbytes()) / (1 << 20), num_kept, results_.size(),
                static_cast<double>(bytes) / (1 << 20), dropped_.size(), flops);
  log::info("activation checkpointing of " + block_->name + text);
}

}  // namespace titan::recompute
