// Activation checkpointing changes only what is kept: gradients are bitwise equal; kept bytes and
// repeated work follow formulas.
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/head.h>
#include <titan/nn/linear.h>
#include <titan/nn/weight_gradients.h>
#include <titan/ops/attention.h>
#include <titan/recompute.h>

#include "core/runtime/tensors/meta_memory.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

using core::MetaMemory;

struct Mode {
  std::string name;
  Value options;
};

std::vector<Mode> modes() {
  const auto selective = [](const char* option) {
    return Value::map({{"selective_ac_option", option}});
  };
  return {{"full", Value::map()},
          {"full", Value::map({{"early_stop", true}})},
          {"selective", selective("2")},
          {"selective", selective("0")},
          {"selective", selective("op")},
          {"selective", Value::map({{"selective_ac_option", "op"}, {"early_stop", true}})}};
}

/// A model part under activation checkpointing on one rank.
class Checkpointed {
 public:
  Checkpointed(std::vector<Layer> layers, const std::string& mode, const Value& options,
               c10::Device device, at::ScalarType dtype = at::kFloat)
      : device_(make_cpu()), part_(std::move(layers)) {
    const TransformContext context{.mesh = mesh_, .device = *device_};
    if (mode != "none") {
      transform_ = create<ActivationCheckpoint>(mode, options, context);
      transform_->apply(part_, context);
    }
    part_.materialize(device, dtype, kSeed);
  }

  ModelPart& part() { return part_; }
  at::Tensor loss(const Batch& batch) { return part_.forward(at::Tensor(), batch); }

 private:
  dist::Mesh mesh_;
  std::unique_ptr<Device> device_;
  ModelPart part_;
  std::unique_ptr<ActivationCheckpoint> transform_;
};

void expect_same_gradients(ModelPart& actual, ModelPart& expected, const std::string& what) {
  for (size_t i = 0; i < expected.parameters().size(); ++i) {
    const nn::Parameter &a = *actual.parameters()[i], &b = *expected.parameters()[i];
    ASSERT_TRUE(a.grad().defined()) << what << ": " << a.name();
    EXPECT_TRUE(at::equal(a.grad(), b.grad())) << what << ": " << a.name();
  }
}

TEST(Recomputation, LeavesLossesAndGradientsAsTheyAre) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const bool is_tied : {false, true})
      for (const Mode& mode : modes()) {
        const std::string what = mode.name + " " + to_json(mode.options);
        Checkpointed plain(llama_layers(is_tied, 3), "none", Value::map(), at::kCPU, dtype);
        Checkpointed again(llama_layers(is_tied, 3), mode.name, mode.options, at::kCPU, dtype);
        for (int round = 0; round < 2; ++round) {
          Batch batch = make_rows(5 * round, 3);
          if (round == 1)  // two documents in each row
            batch.documents = (at::arange(kSeqLen) >= 2).to(at::kInt).expand({3, kSeqLen});
          const at::Tensor expected = plain.loss(batch), actual = again.loss(batch);
          EXPECT_TRUE(at::equal(actual, expected)) << what;
          expected.backward();
          actual.backward();
        }
        expect_same_gradients(again.part(), plain.part(), what);
      }
}

/// A block that counts its first runs and has an auxiliary loss.
std::vector<Layer> counting_layers(int& first_runs, int& all_runs) {
  std::vector<Layer> layers = llama_layers(false, 2);
  for (size_t i : {1, 2})
    layers[i].module->wrap([&](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      first_runs += is_first_run();
      ++all_runs;
      return next(nn::with_auxiliary_loss(x, 0.3 * x.square().sum(), batch), batch);
    });
  return layers;
}

TEST(Recomputation, TellsFirstRunsFromOthers) {
  int first_plain = 0, all_plain = 0;
  Checkpointed plain(counting_layers(first_plain, all_plain), "none", Value::map(), at::kCPU);
  Batch batch = make_rows(0, 2);
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(0.5);
  plain.loss(batch).backward();
  const double expected = *batch.auxiliary_losses->sum();
  EXPECT_EQ(first_plain, 2);
  std::vector<Mode> all_modes = modes();
  all_modes.push_back({"memory_budget", Value::map()});
  for (const Mode& mode : all_modes) {
    int first_runs = 0, all_runs = 0;
    Checkpointed again(counting_layers(first_runs, all_runs), mode.name, mode.options, at::kCPU);
    batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(0.5);
    again.loss(batch).backward();
    EXPECT_EQ(first_runs, 2) << mode.name;
    EXPECT_GT(all_runs, 2) << mode.name << " runs no block again";
    EXPECT_EQ(*batch.auxiliary_losses->sum(), expected) << mode.name;
    expect_same_gradients(again.part(), plain.part(), mode.name);
    const at::NoGradGuard no_grad;
    again.loss(batch);
    EXPECT_EQ(first_runs, 2) << "validation";
    EXPECT_EQ(*batch.auxiliary_losses->sum(), expected) << "validation";
  }
}

/// Recomputation could break a tie between experts differently.
TEST(Recomputation, NeverChoosesExpertsAgain) {
  std::vector<Mode> all_modes = modes();
  all_modes.push_back({"memory_budget", Value::map({{"memory_budget", 0.0}})});
  for (const Mode& mode : all_modes) {
    int num_choices = 0;
    std::vector<Layer> layers = llama_layers(false, 2);
    for (size_t i : {1, 2})
      layers[i].module->wrap([&](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
        const at::Tensor sign = keepable({.kind = Operation::Kind::routing}, [&] {
          return at::ones({1}, x.options()) * (++num_choices % 2 ? 1.0 : -1.0);
        });
        return next(x * sign, batch);
      });
    Checkpointed again(std::move(layers), mode.name, mode.options, at::kCPU);
    const at::Tensor loss = again.loss(make_rows(0, 2));
    const int at_first = num_choices;
    EXPECT_EQ(at_first, mode.name == "memory_budget" ? 3 : 2) << mode.name;  // measures a block
    loss.backward();
    EXPECT_EQ(num_choices, at_first) << mode.name;
  }
}

TEST(Recomputation, CanBeWalkedTwiceWhereTheGraphIsKept) {
  for (const Mode& mode : modes()) {
    Checkpointed plain(llama_layers(false), "none", Value::map(), at::kCPU);
    Checkpointed again(llama_layers(false), mode.name, mode.options, at::kCPU);
    for (Checkpointed* model : {&plain, &again}) {
      const at::Tensor loss = model->loss(make_rows(0, 2));
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
    }
    expect_same_gradients(again.part(), plain.part(), mode.name);
  }
}

TEST(Recomputation, LetsWeightGradientsBePutOff) {
  for (const Mode& mode : modes()) {
    Checkpointed plain(llama_layers(false), "none", Value::map(), at::kCPU);
    Checkpointed again(llama_layers(false), mode.name, mode.options, at::kCPU);
    plain.loss(make_rows(0, 2)).backward();
    const auto queue = std::make_shared<nn::WeightGradientQueue>();
    at::Tensor loss;
    {
      const nn::WeightGradientQueue::Scope scope(queue);
      loss = again.loss(make_rows(0, 2));
    }
    queue->defer();
    loss.backward();
    queue->run();
    expect_same_gradients(again.part(), plain.part(), mode.name);
  }
}

// ---- kept bytes --------------------------------------------------------------------------------

constexpr int64_t kDim = 24, kHeads = 4, kKvHeads = 2, kHeadDim = 6, kHidden = 68;
constexpr int64_t kRows = 5, kTokens = kRows * kSeqLen, kFloatBytes = 4;

/// Bytes that a block keeps of the forward without checkpointing: its input, both norms' outputs
/// and the residual between; queries and keys after the rotation, values, the output and the
/// log-sum-exp of attention; gate, up and their product; one number per token and norm.
int64_t kept_of_plain_block() {
  const int64_t per_token =
      4 * kDim + 2 * kHeads * kHeadDim + 2 * kKvHeads * kHeadDim + kHeads + 3 * kHidden + 2;
  return kFloatBytes * kTokens * per_token;
}
int64_t kept_of_input() {
  return kFloatBytes * kTokens * kDim;
}
/// wq, wv, w1 and w2 (every second product), and attention with its log-sum-exp.
int64_t kept_of_op_block() {
  const int64_t per_token =
      kDim + kHeads * kHeadDim + kKvHeads * kHeadDim + kHidden + kDim + kHeads * kHeadDim + kHeads;
  return kFloatBytes * kTokens * per_token;
}

/// Bytes alive between forward and backward.
int64_t kept_bytes(const std::string& mode, const Value& options, int64_t num_layers) {
  MetaMemory::start_counting();
  Checkpointed model(llama_layers(false, num_layers), mode, options, c10::kMeta);
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const Batch batch{.tokens = at::empty({kRows, kSeqLen}, ids),
                    .labels = at::empty({kRows, kSeqLen}, ids)};
  const int64_t before = MetaMemory::live().total();
  const at::Tensor loss = model.loss(batch);
  return MetaMemory::live().total() - before;
}

/// Bytes that one more block keeps.
int64_t kept_per_block(const std::string& mode, const Value& options, int64_t every = 1) {
  return kept_bytes(mode, options, 2 + every) - kept_bytes(mode, options, 2);
}

TEST(Recomputation, KeepsTheBytesOfItsFormula) {
  EXPECT_EQ(kept_per_block("none", Value::map()), kept_of_plain_block());
  EXPECT_EQ(kept_per_block("full", Value::map()), kept_of_input());
  EXPECT_EQ(kept_per_block("selective", Value::map({{"selective_ac_option", "0"}})),
            kept_of_input());
  EXPECT_EQ(kept_per_block("selective", Value::map({{"selective_ac_option", "2"}}), 2),
            kept_of_plain_block() + kept_of_input());
  EXPECT_EQ(kept_per_block("selective", Value::map({{"selective_ac_option", "op"}})),
            kept_of_op_block());
  // a product of w2's shape is never kept, and w2 was the last one kept
  EXPECT_EQ(kept_per_block("selective", Value::map({{"selective_ac_option", "op"},
                                                    {"per_op_sac_force_recompute_mm_shapes_by_fqns",
                                                     Value::List{"feed_forward.w2"}}})),
            kept_of_op_block() - kFloatBytes * kTokens * kDim);
}

double repeated_flops(const std::string& mode, const Value& options, int64_t num_layers = 2) {
  Checkpointed model(llama_layers(false, num_layers), mode, options, at::kCPU);
  const at::Tensor loss = model.loss(make_rows(0, kRows));
  const double before = RecomputeScope::recomputed_flops();
  loss.backward();
  return RecomputeScope::recomputed_flops() - before;
}

TEST(Recomputation, CountsTheWorkThatItRepeats) {
  const auto product = [](int64_t in, int64_t out) {
    return 2.0 * static_cast<double>(kTokens * in * out);
  };
  const double wq = product(kDim, kHeads * kHeadDim), wo = wq;
  const double wk = product(kDim, kKvHeads * kHeadDim), wv = wk;
  const double w1 = product(kDim, kHidden), w3 = w1, w2 = product(kHidden, kDim);
  const double attention =  // half of both products
      2.0 * static_cast<double>(kTokens * kSeqLen * kHeads * kHeadDim);
  const double block = wq + wk + wv + attention + wo + w1 + w2 + w3;
  const Value early = Value::map({{"early_stop", true}});
  const Value op = Value::map({{"selective_ac_option", "op"}});
  EXPECT_EQ(repeated_flops("none", Value::map()), 0);
  EXPECT_EQ(repeated_flops("full", Value::map()), 2 * block);
  EXPECT_EQ(repeated_flops("full", early), 2 * (block - w2));  // w2's result is not needed
  EXPECT_EQ(repeated_flops("selective", Value::map()), block);
  EXPECT_EQ(repeated_flops("selective", Value::map(), 3), block) << "the second of three";
  EXPECT_EQ(repeated_flops("selective", op), 2 * (wk + wo + w3));
}

// ---- layers whose results differ between runs ---------------------------------------------------

/// y = x · w ⊙ r, where each run draws a new r, or one of another shape every other run.
class Noise final : public nn::Module {
 public:
  explicit Noise(bool changes_shape)
      : weight_(add_parameter("weight", {kDim}, nn::Init::constant(2))),
        changes_shape_(changes_shape) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    if (changes_shape_ && ++num_runs_ % 2 == 0)
      return (x.reshape({-1, kDim}) * weight_.value()).reshape(x.sizes()) *
             at::rand({1}, x.options());
    return x * weight_.value() * at::rand(x.sizes(), x.options());
  }

 private:
  nn::Parameter& weight_;
  bool changes_shape_;
  int num_runs_ = 0;
};

std::vector<Layer> with_noise(bool changes_shape) {
  std::vector<Layer> layers = llama_layers(false);
  Layer noise{"noise", std::make_unique<Noise>(changes_shape), "noise", kDim, /*is_block=*/true};
  layers.insert(layers.begin() + 2, std::move(noise));
  return layers;
}

TEST(Recomputation, DrawsTheSameRandomNumbersAgain) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const auto gradients = [&](const std::string& mode, const Value& options) {
    Checkpointed model(with_noise(false), mode, options, at::kCPU);
    generator.set_current_seed(3);
    model.loss(make_rows(0, 2)).backward();
    std::vector<at::Tensor> all;
    for (const nn::Parameter* parameter : model.part().parameters())
      all.push_back(parameter->grad());
    all.push_back(at::rand({4}));  // later random numbers are unchanged too
    return all;
  };
  const std::vector<at::Tensor> plain = gradients("none", Value::map());
  const auto differences = [&](const std::vector<at::Tensor>& others) {
    size_t count = 0;
    for (size_t i = 0; i < plain.size(); ++i) count += !at::equal(plain[i], others[i]);
    return count;
  };
  EXPECT_EQ(differences(gradients("full", Value::map())), 0);
  EXPECT_GT(differences(gradients("full", Value::map({{"preserve_rng_state", false}}))), 0);
}

std::string error_of_backward(const Value& options) {
  Checkpointed model(with_noise(true), "full", options, at::kCPU);
  const at::Tensor loss = model.loss(make_rows(0, 2));
  try {
    loss.backward();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Recomputation, SaysWhichLayerDoesNotRepeatItself) {
  const std::string error = error_of_backward(Value::map());
  EXPECT_NE(error.find("while recomputing noise for its backward"), std::string::npos) << error;
  EXPECT_NE(error.find("the first time"), std::string::npos) << error;
}

TEST(Recomputation, NeedsBlocks) {
  std::vector<Layer> layers = llama_layers(false);
  for (Layer& layer : layers) layer.is_block = false;
  try {
    Checkpointed(std::move(layers), "full", Value::map(), at::kCPU);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    EXPECT_NE(std::string(e.what()).find("this model has none"), std::string::npos) << e.what();
  }
}

TEST(Recomputation, ForwardWithoutGradientsKeepsNothing) {
  MetaMemory::start_counting();
  Checkpointed model(llama_layers(false), "full", Value::map(), c10::kMeta);
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const Batch batch{.tokens = at::empty({2, kSeqLen}, ids)};
  const at::NoGradGuard no_grad;
  model.loss(batch);
  const int64_t before = MetaMemory::live().total();
  model.loss(batch);
  EXPECT_EQ(MetaMemory::live().total(), before);
}

}  // namespace
}  // namespace titan::testing
