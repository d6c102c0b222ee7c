#include <titan/engine.h>

#include <ATen/core/grad_mode.h>

#include "nn/head_loss.h"

namespace titan {

Engine::~Engine() = default;
OpenedModel::~OpenedModel() = default;
TrainingLoop::~TrainingLoop() = default;
EngineHost::~EngineHost() = default;

Generator Engine::generator() {
  return {executor(), mesh(), device(), tokenizer(), part().num_sequence_cuts()};
}

at::Tensor Engine::log_likelihoods(const Batch& batch) {
  const at::NoGradGuard no_grad;
  Batch unlabelled = batch;
  unlabelled.labels = at::Tensor();
  const at::Tensor logits = executor().logits(unlabelled.to(device())).flatten(0, 1);
  const at::Tensor labels = batch.labels.flatten().to(device());
  return nn::likelihoods_in_place(logits, labels).logs.to(at::kCPU).view(batch.labels.sizes());
}

}  // namespace titan
