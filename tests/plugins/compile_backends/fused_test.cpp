// compile_backend 'fused': bitwise equal to the plain layers where it promises that, equal up to
// rounding elsewhere. Runs under transforms that gather, recompute and split layers; and which
// layers it leaves to others.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <titan/compile_backend.h>
#include <titan/error.h>
#include <titan/nn/attention.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/weight_gradients.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

using ::testing::HasSubstr;

Value only(const std::string& pass) {
  Value options = Value::map();
  for (const char* one : {"attention_inputs", "feed_forward", "residual_norm"})
    options[one] = pass.empty() || pass == one;
  return options;
}

void fuse(ModelPart& part, const Value& options = Value::map()) {
  const dist::Mesh alone;
  const auto device = make_cpu();
  const TransformContext context{.mesh = alone, .device = *device};
  create<CompileBackend>("fused", options, context)->apply(part, context);
}

ModelPart model(const Value* options, at::ScalarType dtype = at::kFloat) {
  ModelPart part(llama_layers(false));
  if (options) fuse(part, *options);
  part.materialize(c10::kCPU, dtype, kSeed);
  return part;
}

void expect_gradients(ModelPart& actual, ModelPart& expected, double tolerance) {
  ASSERT_EQ(actual.parameters().size(), expected.parameters().size());
  for (size_t i = 0; i < actual.parameters().size(); ++i) {
    const nn::Parameter &p = *actual.parameters()[i], &q = *expected.parameters()[i];
    ASSERT_TRUE(p.grad().defined()) << p.name();
    if (tolerance == 0)
      EXPECT_TRUE(at::equal(p.grad(), q.grad())) << p.name();
    else
      EXPECT_LE(relative_error(p.grad(), q.grad(), q.grad()), tolerance) << p.name();
  }
}

TEST(FusedBackend, NormsAndFeedForwardsGiveTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble})
    for (const char* pass : {"feed_forward", "residual_norm"}) {
      SCOPED_TRACE(std::string(pass) + " in " + at::toString(type));
      const Value options = only(pass);
      ModelPart fused = model(&options, type), plain = model(nullptr, type);
      const at::Tensor a = fused.forward(at::Tensor(), make_rows(0, 3));
      const at::Tensor b = plain.forward(at::Tensor(), make_rows(0, 3));
      EXPECT_TRUE(at::equal(a, b));
      a.backward();
      b.backward();
      expect_gradients(fused, plain, 0);
    }
}

TEST(FusedBackend, ProjectionsDifferByRoundOffAlone) {
  for (const auto& [type, tolerance] :
       {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 2e-5)}) {
    const Value options = only("");
    ModelPart fused = model(&options, type), plain = model(nullptr, type);
    Batch batch = make_rows(0, 3);
    for (const bool positions : {false, true}) {
      if (positions) batch.positions = batch.tokens % 5;
      const at::Tensor a = fused.forward(at::Tensor(), batch);
      const at::Tensor b = plain.forward(at::Tensor(), batch);
      EXPECT_NEAR(a.item<double>() / b.item<double>(), 1, tolerance);
      a.backward();
      b.backward();
      expect_gradients(fused, plain, tolerance);
      fused.clear_gradients();
      plain.clear_gradients();
    }
  }
}

TEST(FusedBackend, ForwardsWithoutGradientsGiveTheSameBits) {
  const at::NoGradGuard no_grad;
  const Value options = only("");
  ModelPart fused = model(&options), plain = model(nullptr);
  const at::Tensor loss = fused.forward(at::Tensor(), make_rows(0, 2));
  EXPECT_TRUE(at::equal(loss, plain.forward(at::Tensor(), make_rows(0, 2))));
}

TEST(FusedBackend, AGraphThatIsKeptCanBeWalkedAgain) {
  const Value options = only("");
  ModelPart twice = model(&options), once = model(&options);
  const at::Tensor loss = twice.forward(at::Tensor(), make_rows(0, 2));
  loss.backward({}, /*retain_graph=*/true);
  twice.clear_gradients();
  loss.backward();
  once.forward(at::Tensor(), make_rows(0, 2)).backward();
  expect_gradients(twice, once, 0);
}

TEST(FusedBackend, PutsTheGradientsOfWeightsOff) {
  const Value options = only("");
  ModelPart split = model(&options), whole = model(&options);
  const auto queue = std::make_shared<nn::WeightGradientQueue>();
  at::Tensor loss;
  {
    const nn::WeightGradientQueue::Scope scope(queue);
    loss = split.forward(at::Tensor(), make_rows(0, 2));
  }
  queue->defer();
  loss.backward();
  int put_off = 0;
  for (const nn::Parameter* parameter : split.parameters())
    if (!parameter->grad().defined()) ++put_off;
  EXPECT_EQ(put_off, 2 * 7);
  queue->run();
  whole.forward(at::Tensor(), make_rows(0, 2)).backward();
  expect_gradients(split, whole, 0);
}

TEST(FusedBackend, FrozenWeightsGetNoGradient) {
  const auto frozen = [](bool is_fused) {
    ModelPart part(llama_layers(false));
    for (nn::Parameter* parameter : part.parameters())
      if (parameter->name().find("wk") != std::string::npos ||
          parameter->name().find("w2") != std::string::npos)
        parameter->freeze();
    if (is_fused) fuse(part);
    part.materialize(c10::kCPU, at::kDouble, kSeed);
    part.forward(at::Tensor(), make_rows(0, 2)).backward();
    return part;
  };
  ModelPart fused = frozen(true), plain = frozen(false);
  for (size_t i = 0; i < plain.parameters().size(); ++i) {
    const at::Tensor &a = fused.parameters()[i]->grad(), &b = plain.parameters()[i]->grad();
    ASSERT_EQ(a.defined(), b.defined()) << plain.parameters()[i]->name();
    if (a.defined()) {
      EXPECT_LE(relative_error(a, b, b), 1e-12) << plain.parameters()[i]->name();
    }
  }
}

TEST(FusedBackend, TrainsUnderDataParallelismAndRecomputation) {
  open_plugins();
  const auto device = make_cpu();
  struct Mode {
    std::string name;
    Value options;
  };
  const std::vector<Mode> modes = {{"", {}},
                                   {"full", Value::map()},
                                   {"selective", Value::map({{"selective_ac_option", "op"}})},
                                   {"memory_budget", Value::map({{"memory_budget", 0.5}})},
                                   {"offload", Value::map({{"min_bytes", 1}})}};
  const auto finish = [](ModelPart& part) { fuse(part); };
  fuse(*std::make_unique<ModelPart>(llama_layers(false)));  // opens the plugin before threads start
  for (const int64_t ranks : {1, 2})
    for (const Mode& mode : modes) {
      const Replica::Prepare prepare = [&](ModelPart& part) {
        if (mode.name.empty()) return;
        const dist::Mesh alone;
        const TransformContext context{.mesh = alone, .device = *device};
        create<ActivationCheckpoint>(mode.name, mode.options, context)->apply(part, context);
      };
      run_ranks(dist::MeshShape{.dp_shard = ranks}, [&](const dist::Mesh& mesh) {
        Replica fused(llama_layers(true), mesh, "fsdp", Value::map(), at::kDouble, prepare, nullptr,
                      finish);
        Replica whole(llama_layers(true), mesh, "", Value::map(), at::kDouble);
        fused.run_step(own_microbatches(mesh, 1, 2));
        std::vector<Batch> all;
        for (int64_t row = 0; row < 2 * ranks; ++row) all.push_back(make_rows(row, 1));
        whole.run_step(all);
        expect_equal_slices(fused, whole, 1e-12, mode.name + " " + std::to_string(ranks));
      });
    }
}

class Scaled final : public nn::LinearKernel {
 public:
  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override {
    return at::linear(x, weight.value()) * 0.5;
  }
};

TEST(FusedBackend, LeavesWhatOthersComputeToThem) {
  ModelPart part(llama_layers(false));
  part.visit_modules([](const std::string& path, nn::Module& module) {
    if (path == "layers.0.attention.wk" || path == "layers.1.feed_forward.w3")
      dynamic_cast<nn::Linear&>(module).set_kernel("halves", std::make_unique<Scaled>());
  });
  fuse(part);
  std::string owners;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (path.ends_with("attention") || path.ends_with("feed_forward"))
      owners += path + ": " + module.computed_by() + "\n";
  });
  EXPECT_EQ(owners,
            "layers.0.attention: \n"
            "layers.0.feed_forward: fused\n"
            "layers.1.attention: fused in its projections\n"
            "layers.1.feed_forward: \n");
}

TEST(FusedBackend, LeavesQueriesAndKeysThatAreNormalisedToTheirLayer) {
  const auto trained = [](bool is_fused) {
    const Value options = Value::map({{"dim", 32},
                                      {"n_layers", 1},
                                      {"n_heads", 4},
                                      {"n_kv_heads", 2},
                                      {"head_dim", 16},
                                      {"hidden_dim", 48},
                                      {"vocab_size", kVocab}});
    ModelPart part(create<Model>("qwen3", options, {.seq_len = 16})->build());
    if (is_fused) fuse(part);
    part.materialize(c10::kCPU, at::kFloat, kSeed);
    part.forward(at::Tensor(), make_rows(0, 2)).backward();
    return part;
  };
  ModelPart fused = trained(true), plain = trained(false);
  expect_gradients(fused, plain, 0);
  fused.visit_modules([](const std::string& path, nn::Module& module) {
    if (path == "layers.0.attention") {
      EXPECT_EQ(module.computed_by(), "");
    } else if (path == "layers.0.feed_forward") {
      EXPECT_EQ(module.computed_by(), "fused");
    }
  });
}

TEST(FusedBackend, WhoComesLaterIsRefusedByName) {
  ModelPart part(llama_layers(false));
  fuse(part);
  part.visit_modules([](const std::string& path, nn::Module& module) {
    if (path != "layers.0.attention.wk") return;
    try {
      dynamic_cast<nn::Linear&>(module).set_kernel("halves", std::make_unique<Scaled>());
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("halves"));
      EXPECT_THAT(e.what(), HasSubstr("fused"));
    }
  });
}

TEST(FusedBackend, NormalizesWhatComesBetweenTheSumAndTheNorm) {
  const auto doubled = [](bool is_fused) {
    ModelPart part(llama_layers(false));
    part.visit_modules([](const std::string& path, nn::Module& module) {
      if (path == "layers.0.ffn_norm")
        module.wrap([](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          return next(x.tanh(), batch);
        });
    });
    if (is_fused) fuse(part, only("residual_norm"));
    part.materialize(c10::kCPU, at::kFloat, kSeed);
    return part.forward(at::Tensor(), make_rows(0, 2));
  };
  EXPECT_TRUE(at::equal(doubled(true), doubled(false)));
}

TEST(FusedBackend, DoesNothingForPartsThatNobodyAskedFor) {
  ModelPart part(llama_layers(false));
  Value options = Value::map();
  options["components"] = Value::list({"loss"});
  fuse(part, options);
  part.visit_modules([](const std::string& path, nn::Module& module) {
    EXPECT_EQ(module.computed_by(), "") << path;
  });
}

}  // namespace
}  // namespace titan::testing
