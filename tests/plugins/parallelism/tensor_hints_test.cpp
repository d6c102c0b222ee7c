// What the tensor plugin derives from a model's modules, and what it refuses.
#include <memory>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs
using nn::WeightLayout;
using titan::testing::error_of;
using titan::testing::holds;

constexpr int64_t kDim = 8, kHeadDim = 3, kVocab = 131;
const nn::Init kInit = nn::Init::normal(0, 0.3);

/// A region whose heads share a norm. The norm's weight is not sharded, but each rank applies it
/// only to its own heads. The second column projection reads the input that the first has gathered.
class NormedHeads : public nn::Module {
 public:
  NormedHeads()
      : in_(add("in", 4 * kHeadDim, kDim, WeightLayout::column)),
        gate_(add("gate", 4 * kHeadDim, kDim, WeightLayout::column)),
        norm_(add_module("norm", std::make_unique<nn::RmsNorm>(kHeadDim, 1e-5))),
        out_(add("out", kDim, 4 * kHeadDim, WeightLayout::row)) {
    set_region(nn::Region::gathered_to_partial);
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor gate = gate_(x, batch);
    const at::Tensor heads = in_(x, batch);
    const at::Tensor normed =
        norm_(heads.view({heads.size(0), heads.size(1), -1, kHeadDim}), batch);
    return out_(normed.reshape(heads.sizes()) * gate, batch);
  }

 private:
  nn::Linear& add(const char* name, int64_t out, int64_t in, WeightLayout layout) {
    return add_module(name, std::make_unique<nn::Linear>(in, out, layout, kInit));
  }
  nn::Linear& in_;
  nn::Linear& gate_;
  nn::RmsNorm& norm_;
  nn::Linear& out_;
};

/// x + inner(x).
class Residual : public nn::Module {
 public:
  explicit Residual(std::unique_ptr<nn::Module> inner)
      : inner_(add_module("inner", std::move(inner))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return x + inner_(x, batch);
  }

 private:
  nn::Module& inner_;
};

/// Declares attention, but no region.
class PlacelessAttention : public nn::Module, public nn::AttentionLayer {
 public:
  nn::AttentionCore& core() override { return core_; }
  int64_t num_heads() const override { return 4; }
  int64_t num_kv_heads() const override { return 4; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }

 private:
  nn::AttentionCore core_;
};

/// A region around another module.
class Around : public nn::Module {
 public:
  explicit Around(std::unique_ptr<nn::Module> inner)
      : inner_(add_module("inner", std::move(inner))) {
    set_region(nn::Region::gathered_to_partial);
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override { return inner_(x, batch); }

 private:
  nn::Module& inner_;
};

std::vector<Layer> around(std::unique_ptr<nn::Module> module) {
  std::vector<Layer> layers;
  layers.push_back(
      {"embedding", std::make_unique<nn::Embedding>(kVocab, kDim, kInit), "embedding"});
  layers.push_back({"middle", std::make_unique<Residual>(std::move(module)), "middle"});
  layers.push_back({"head",
                    std::make_unique<nn::OutputHead>(
                        nn::OutputHeadOptions{.dim = kDim, .vocab_size = kVocab, .init = kInit}),
                    "head"});
  return layers;
}

Error refusal(std::vector<Layer> layers, int64_t tp) {
  const auto device = make_cpu();
  const dist::Mesh mesh(dist::MeshShape{.tp = tp}, 0, [](const std::string&, const auto& ranks) {
    return dist::make_fake_backend(0, static_cast<int>(ranks.size()));
  });
  ModelPart part(std::move(layers));
  const Error error = error_of([&] { apply_tensor(part, {.tp = tp}, mesh, *device); });
  for (const nn::Parameter* p : part.parameters()) EXPECT_TRUE(p->shardings().empty());
  return error;
}

TEST(TensorHints, SumGradientsOfWholeWeightsWithinARegion) {
  const MakeLayers layers = [] { return around(std::make_unique<NormedHeads>()); };
  const StepResult alone = run_alone(layers);
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    expect_equal_steps(run_cut(layers, c), alone);
  }
}

TEST(TensorHints, LetProjectionsThatNoRankCutsRunAnywhere) {
  const MakeLayers layers = [] {
    return around(
        std::make_unique<nn::Linear>(kDim, kDim, WeightLayout::replicated, nn::Init::normal(0, 1)));
  };
  const StepResult alone = run_alone(layers);
  for (const bool sequence : {true, false}) {
    SCOPED_TRACE(sequence);
    expect_equal_steps(run_cut(layers, {.tp = 2, .sequence = sequence}), alone);
  }
}

TEST(TensorHints, RefuseHeadsThatDoNotDivide) {
  const Error error = refusal(small_llama(false, /*num_kv_heads=*/2)(), 4);
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(error.what(),
               "tensor parallelism over 4 ranks does not fit the model:\n"
               "  layers.0.attention (and 1 more): num_heads = 4 and num_kv_heads = 2 must be "
               "multiples of the degree; degrees that divide both: 1, 2\n"
               "set parallelism.tensor_parallel_degree to one of: 1, 2");
}

TEST(TensorHints, RefuseAVocabularyThatLeavesARankWithoutARow) {
  const Error error = refusal(small_llama(false, 2, /*vocab_size=*/5)(), 4);
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(error.what(),
               "tensor parallelism over 4 ranks does not fit the model:\n"
               "  tok_embeddings (and 1 more): a vocabulary of 5 in chunks of 2 leaves ranks "
               "without a row\n"
               "  layers.0.attention (and 1 more): num_heads = 4 and num_kv_heads = 2 must be "
               "multiples of the degree; degrees that divide both: 1, 2\n"
               "set parallelism.tensor_parallel_degree to one of: 1, 2");
}

TEST(TensorHints, RefuseWhatTheyCannotFollow) {
  const auto column = [] {
    return std::make_unique<nn::Linear>(kDim, kDim, WeightLayout::column, kInit);
  };
  const Error stray = refusal(around(column()), 2);
  EXPECT_EQ(stray.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(stray.what(), "middle.inner: its weight may be cut, but it is outside"));

  const Error cut = refusal(around(std::make_unique<PlacelessAttention>()), 2);
  EXPECT_EQ(cut.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(cut.what(), "middle.inner: it attends outside of every region"));

  const Error nested =
      refusal(around(std::make_unique<Around>(std::make_unique<NormedHeads>())), 2);
  EXPECT_EQ(nested.kind(), ErrorKind::config);
  EXPECT_TRUE(
      holds(nested.what(), "middle.inner.inner: a region, embedding or head within another"));

  const Error whole = refusal(around(std::make_unique<Around>(column())), 2);
  EXPECT_EQ(whole.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(whole.what(), "middle.inner: its output is marked as a sum over ranks"));
}

}  // namespace
}  // namespace titan
