// The token positions that layers receive, where tensor parallelism shards the sequence between
// regions and where it does not.
#include <map>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs

TEST(TensorPlaces, AreThoseOfTheTokensThatALayerHas) {
  const at::Tensor whole =
      at::arange(7 * kRowLength, (7 + kRows) * kRowLength).view({kRows, kRowLength});
  const auto device = make_cpu();
  for (const TensorCase& c : all_tensor_cases()) {
    if (c.async) continue;  // with async, layers gather for themselves within regions
    SCOPED_TRACE(c.text());
    run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
      std::map<std::string, at::Tensor> seen;
      std::vector<Layer> layers = small_llama(false)();
      layers[1].module->visit_modules([&](const std::string& path, nn::Module& module) {
        module.wrap([&seen, path](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          if (x.dim() == 3) seen[path] = batch.places.numbers(x.size(0), x.size(1), x.device());
          return next(x, batch);
        });
      });
      ModelPart part(std::move(layers));
      apply_tensor(part, c, mesh, *device);
      part.materialize(c10::kCPU, at::kDouble, 11);
      Batch batch = small_batch(0);
      batch.places.first_row = 7;
      part.forward(at::Tensor(), batch);
      const int64_t length = c.sequence ? kRowLength / c.tp : kRowLength;
      const int64_t first = c.sequence ? mesh.group("tp").rank() * length : 0;
      EXPECT_TRUE(at::equal(seen.at("attention_norm"), whole.narrow(1, first, length)));
      EXPECT_TRUE(at::equal(seen.at("ffn_norm"), whole.narrow(1, first, length)));
      EXPECT_TRUE(at::equal(seen.at("attention"), whole));
      EXPECT_TRUE(at::equal(seen.at("feed_forward.w1"), whole));
    });
  }
}

}  // namespace
}  // namespace titan
