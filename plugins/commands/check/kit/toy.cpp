#include "toy.h"

#include <random>

#include <ATen/ops/empty.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/embedding.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/rms_norm.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::conformance {
namespace {

constexpr int64_t kWidth = 16;

class Block final : public nn::Module {
 public:
  Block()
      : norm_(add_module("norm", std::make_unique<nn::RmsNorm>(kWidth, 1e-5))),
        feed_forward_(
            add_module("feed_forward", std::make_unique<nn::FeedForward>(nn::FeedForwardOptions{
                                           .dim = kWidth,
                                           .hidden_dim = 2 * kWidth,
                                           .gate_init = nn::Init::truncated_normal(0, 0.2),
                                           .output_init = nn::Init::truncated_normal(0, 0.2)}))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return x.add(feed_forward_(norm_(x, batch), batch));
  }

 private:
  nn::RmsNorm& norm_;
  nn::FeedForward& feed_forward_;
};

}  // namespace

std::shared_ptr<dist::Backend> HostDevice::connect(const dist::Endpoint&) {
  fail(ErrorKind::internal, "a test of one rank connects no ranks");
}

OneRank::OneRank(at::ScalarType dtype) : dtype_(dtype) {}

std::vector<Layer> toy_layers() {
  std::vector<Layer> layers;
  layers.push_back({"tok_embeddings",
                    std::make_unique<nn::Embedding>(kToyVocab, kWidth, nn::Init::normal(0, 1)),
                    "tok_embeddings", kWidth});
  for (const char* name : {"layers.0", "layers.1"})
    layers.push_back({name, std::make_unique<Block>(), name, kWidth, /*is_block=*/true});
  layers.push_back(
      {"output",
       std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{
           .dim = kWidth, .vocab_size = kToyVocab, .init = nn::Init::truncated_normal(0, 0.2)}),
       ""});
  return layers;
}

Batch drawn_batch(uint64_t seed, int64_t rows, int64_t length, int64_t vocab) {
  std::mt19937_64 draw(seed);
  Batch batch;
  batch.tokens = at::empty({rows, length}, at::kLong);
  batch.labels = at::empty({rows, length}, at::kLong);
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  auto* labels = batch.labels.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    auto next = static_cast<int64_t>(draw() % static_cast<uint64_t>(vocab));
    for (int64_t i = row * length; i < (row + 1) * length; ++i) {
      tokens[i] = next;
      labels[i] = next = static_cast<int64_t>(draw() % static_cast<uint64_t>(vocab));
    }
  }
  return batch;
}

at::Tensor loss_of(ModelPart& part, const Batch& batch) {
  return part.forward(at::Tensor(), batch);
}

Toy::Toy(uint64_t seed, at::ScalarType dtype) : part_(toy_layers()) {
  part_.materialize(c10::kCPU, dtype, seed);
}

double Toy::compute_gradients(uint64_t seed) {
  part_.clear_gradients();
  const Batch batch = drawn_batch(seed, 2, 16, kToyVocab);
  const at::Tensor loss = loss_of(part_, batch) / batch.labels.numel();
  torch::autograd::backward({loss}, {});
  return loss.item<double>();
}

std::vector<at::Tensor> Toy::weights() {
  std::vector<at::Tensor> copies;
  for (nn::Parameter* parameter : part_.parameters())
    copies.push_back(parameter->shard().detach().clone());
  return copies;
}

}  // namespace titan::conformance
