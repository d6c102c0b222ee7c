// A transform that runs after data parallelism: its kernels and replaced modules read whole
// weights, and gradients arrive, with and without activation checkpointing.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <ATen/ops/linear.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/rms_norm.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

/// The formula, in ATen operations.
class FormulaNorm final : public nn::RmsNormKernel {
 public:
  at::Tensor normalize(const at::Tensor& x, nn::Parameter& weight, double eps) override {
    EXPECT_EQ(weight.value().numel(), x.size(-1)) << "not whole: " << weight.name();
    return x * at::rsqrt((x * x).mean(-1, true) + eps) * weight.value();
  }
};

class FormulaFeedForward final : public nn::Module {
 public:
  explicit FormulaFeedForward(nn::Module& replaced)
      : w1_(adopt_parameter("w1.weight", replaced.shared_parameter("w1.weight"))),
        w2_(adopt_parameter("w2.weight", replaced.shared_parameter("w2.weight"))),
        w3_(adopt_parameter("w3.weight", replaced.shared_parameter("w3.weight"))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    return at::linear(at::silu(at::linear(x, w1_.value())) * at::linear(x, w3_.value()),
                      w2_.value());
  }

 private:
  nn::Parameter &w1_, &w2_, &w3_;
};

void set_phase_kernels(ModelPart& part) {
  int num_norms = 0, num_feed_forwards = 0;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (auto* norm = dynamic_cast<nn::RmsNorm*>(&module)) {
      norm->set_kernel("formula", std::make_unique<FormulaNorm>());
      ++num_norms;
    } else if (dynamic_cast<nn::FeedForward*>(&module)) {
      part.replace(path, std::make_unique<FormulaFeedForward>(module));
      ++num_feed_forwards;
    }
  });
  EXPECT_EQ(num_norms, 5);
  EXPECT_EQ(num_feed_forwards, 2);
}

TEST(CompilePhase, FusedLayersTrainAsTheOthersUnderDataParallelism) {
  open_plugins();
  const auto device = make_cpu();
  const auto checkpointing = [&](const std::string& mode) -> Replica::Prepare {
    if (mode.empty()) return {};
    return [&device, mode](ModelPart& part) {
      const dist::Mesh alone;
      const TransformContext context{.mesh = alone, .device = *device};
      create<ActivationCheckpoint>(mode, Value::map(), context)->apply(part, context);
    };
  };
  for (const char* transform : {"fsdp", "ddp"})
    for (const int64_t ranks : {1, 2})
      for (const std::string mode : {"", "full", "selective"}) {
        const bool shards = std::string(transform) == "fsdp";
        const dist::MeshShape shape{.dp_replicate = shards ? 1 : ranks,
                                    .dp_shard = shards ? ranks : 1};
        const std::string what = transform + (" " + std::to_string(ranks)) + " " + mode;
        run_ranks(shape, [&](const dist::Mesh& mesh) {
          Replica fused(llama_layers(true), mesh, transform, Value::map(), at::kDouble,
                        checkpointing(mode), nullptr, set_phase_kernels);
          Replica whole(llama_layers(true), mesh, "", Value::map(), at::kDouble);
          const auto optimizer = fused.make_adamw(), whole_optimizer = whole.make_adamw();
          for (int step = 0; step < 2; ++step) {
            fused.run_step(own_microbatches(mesh, 1, 2));
            std::vector<Batch> all;
            for (int64_t row = 0; row < 2 * ranks; ++row) all.push_back(make_rows(row, 1));
            whole.run_step(all);
            expect_equal_slices(fused, whole, 1e-12, what);
            optimizer->step(1);
            whole_optimizer->step(1);
            fused.part().clear_gradients();
            whole.part().clear_gradients();
          }
        });
      }
}

}  // namespace
}  // namespace titan::testing
