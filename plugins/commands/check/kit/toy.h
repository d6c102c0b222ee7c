// A small model in this process, for tests that need parameters and gradients without a job: an
// embedding, two feed-forward blocks and a head.
#pragma once

#include <memory>

#include <titan/batch.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/transform.h>

#include "test.h"

namespace titan::conformance {

inline constexpr int64_t kToyVocab = 48;

/// The host as a device without a transport.
class HostDevice final : public Device {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "host"; }
  MemoryStats memory() const override { return {.peak = 0, .total = int64_t{1} << 34}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint&) override;
};

/// One rank: a mesh of size 1, the host, one dtype.
class OneRank {
 public:
  explicit OneRank(at::ScalarType dtype = at::kFloat);
  TransformContext context() const { return {mesh_, *device_, dtype_, dtype_, dtype_}; }
  const dist::Mesh& mesh() const { return mesh_; }
  Device& device() const { return *device_; }

 private:
  dist::Mesh mesh_;
  std::unique_ptr<HostDevice> device_ = std::make_unique<HostDevice>();
  at::ScalarType dtype_;
};

/// Layers without memory.
std::vector<Layer> toy_layers();

/// Tokens below `vocab`, labels that are the next tokens; drawn from `seed`.
Batch drawn_batch(uint64_t seed, int64_t rows, int64_t length, int64_t vocab);

/// The toy model with values, float32 unless `dtype` says otherwise.
class Toy {
 public:
  explicit Toy(uint64_t seed, at::ScalarType dtype = at::kFloat);

  ModelPart& part() { return part_; }
  /// Replaces the gradients by those of a batch drawn from `seed`, divided by its tokens; returns
  /// the loss.
  double compute_gradients(uint64_t seed);
  /// Copies of all weights.
  std::vector<at::Tensor> weights();

 private:
  ModelPart part_;
};

/// The sum of losses of `part` on `batch`, without clearing gradients.
at::Tensor loss_of(ModelPart& part, const Batch& batch);

}  // namespace titan::conformance
