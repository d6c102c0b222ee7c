// Which layers of experts the converters of grouped products change, what they refuse, and that
// experts on other ranks give the same results.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sin.h>
#include <titan/nn/grouped_linear.h>
#include <titan/nn/moe.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"
#include "tests/plugins/parallelism/expert_fixture.h"

namespace titan::testing::grouped_converter_test {
namespace {

using at::Tensor;

constexpr const char* kGroupedFloat8 = "quantize.grouped_mm.float8";
constexpr const char* kGroupedMx = "quantize.grouped_mm.mx";

ModelPart sparse_part(int64_t hidden = 96) {
  const Value options = Value::map({{"dim", 64},
                                    {"n_layers", 2},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"vocab_size", 128},
                                    {"hidden_dim", hidden},
                                    {"num_experts", 4}});
  return ModelPart(create<Model>("mixtral", options, {.seq_len = kSeqLen})->build());
}

/// [quantize.grouped_mm...] that computes in software.
Value emulated(const std::string& name, Value::List fqns) {
  Value options = name == kGroupedFloat8 ? Value::map({{"emulate", true}})
                                         : Value::map({{"recipe_name", "mxfp8_emulated"}});
  options["fqns"] = Value(std::move(fqns));
  return options;
}

void convert_experts(ModelPart& part, const char* name, const Value& options) {
  const dist::Mesh mesh;
  const auto device = make_cpu();
  const TransformContext context{.mesh = mesh, .device = *device};
  create<Converter>(name, options, context)->apply(part, context);
}

std::vector<std::string> paths_taken_by(ModelPart& part, const std::string& name) {
  std::vector<std::string> paths;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (module.computed_by() == name) paths.push_back(path);
  });
  return paths;
}

Error refused(const char* name, const Value& options, int64_t hidden = 96) {
  return error_of([&] {
    ModelPart part = sparse_part(hidden);
    convert_experts(part, name, options);
  });
}

TEST(GroupedConverters, TakeTheLayersThatFqnsName) {
  for (const char* name : {kGroupedFloat8, kGroupedMx}) {
    ModelPart all = sparse_part();
    convert_experts(all, name, emulated(name, {"experts"}));
    EXPECT_EQ(paths_taken_by(all, name).size(), 6u) << name;
    ModelPart some = sparse_part();
    convert_experts(some, name, emulated(name, {"layers.1.moe.experts.w2", "layers.0"}));
    EXPECT_EQ(paths_taken_by(some, name),
              (std::vector<std::string>{"layers.0.moe.experts.w1", "layers.0.moe.experts.w2",
                                        "layers.0.moe.experts.w3", "layers.1.moe.experts.w2"}))
        << name;
  }
}

TEST(GroupedConverters, RefuseNamesThatMatchNothing) {
  for (const std::string name : {kGroupedFloat8, kGroupedMx}) {
    const Error near = refused(name.c_str(), emulated(name, {"experts", "expert.w1"}));
    EXPECT_EQ(near.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(near.what(), name + ".fqns: 'expert.w1' matches no layer of experts; did you "
                                          "mean 'experts.w1'?"));
    EXPECT_TRUE(holds(refused(name.c_str(), emulated(name, {"attention"})).what(),
                      "a name is a part of a path such as 'layers.0.moe.experts.w1'"));
    EXPECT_TRUE(holds(refused(name.c_str(), emulated(name, {""})).what(),
                      "'' matches no layer of experts"));
    EXPECT_TRUE(holds(refused(name.c_str(), emulated(name, {})).what(),
                      name + ".fqns is empty: nothing would be converted"));
  }
}

TEST(GroupedConverters, RefuseAModelWithoutExperts) {
  for (const char* name : {kGroupedFloat8, kGroupedMx}) {
    ModelPart dense(llama_layers(false));
    const Error error =
        error_of([&] { convert_experts(dense, name, emulated(name, {"experts"})); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(error.what(), std::string(name) +
                                        ": the model has no layers of experts; take it out of "
                                        "model.converters"));
  }
}

TEST(GroupedConverters, RefuseSizesThatDoNotDivide) {
  EXPECT_TRUE(holds(refused(kGroupedFloat8, emulated(kGroupedFloat8, {"experts"}), 90).what(),
                    "an expert of 'layers.0.moe.experts.w1' is 90 x 64, but both must be multiples "
                    "of 16"));
  EXPECT_TRUE(
      holds(refused(kGroupedMx, emulated(kGroupedMx, {"experts"}), 80).what(), "multiples of 32"));
}

TEST(GroupedConverters, RefuseADeviceThatCannot) {
  const Value fqns = Value::map({{"fqns", Value::list({"experts"})}});
  EXPECT_TRUE(
      holds(refused(kGroupedFloat8, fqns).what(), "set quantize.grouped_mm.float8.emulate = true"));
  EXPECT_TRUE(holds(refused(kGroupedMx, fqns).what(),
                    "set quantize.grouped_mm.mx.recipe_name = \"mxfp8_emulated\""));
  Value unknown = fqns;
  unknown["recipe_name"] = "mxfp4";
  EXPECT_TRUE(holds(refused(kGroupedMx, unknown).what(), "must be one of 'mxfp8'"));
}

TEST(GroupedConverters, RefuseALayerThatAnotherConverterHas) {
  ModelPart part = sparse_part();
  convert_experts(part, kGroupedFloat8, emulated(kGroupedFloat8, {"w1"}));
  const Error error =
      error_of([&] { convert_experts(part, kGroupedMx, emulated(kGroupedMx, {"experts"})); });
  EXPECT_TRUE(holds(error.what(),
                    "'layers.0.moe.experts.w1' is computed by quantize.grouped_mm.float8 already; "
                    "do not name the layer in quantize.grouped_mm.mx.fqns"));
  const Value targets = Value::map({{"targets", Value::list({"experts"})}});
  ModelPart adapted = sparse_part();
  convert_experts(adapted, "lora", targets);
  const Error late = error_of(
      [&] { convert_experts(adapted, kGroupedFloat8, emulated(kGroupedFloat8, {"experts"})); });
  EXPECT_TRUE(holds(late.what(), "put quantize.grouped_mm.float8 before lora"));
  ModelPart both = sparse_part();
  convert_experts(both, kGroupedMx, emulated(kGroupedMx, {"experts"}));
  convert_experts(both, "lora", targets);
  EXPECT_EQ(paths_taken_by(both, "quantize.grouped_mm.mx, lora around it").size(), 6u);
}

/// (1, tokens, dim): deterministic values that differ by rank.
Tensor tokens_of(int64_t tokens, int64_t rank, double shift) {
  const Tensor places = at::arange(tokens * 32, at::TensorOptions().dtype(at::kDouble));
  return at::sin(places * 12.9898 + static_cast<double>(rank) * 3.7 + shift)
      .view({1, tokens, 32})
      .to(at::kFloat);
}

std::vector<Layer> narrow_mixture() {
  const nn::Init init = nn::Init::normal(0, 0.3);
  std::vector<Layer> layers;
  layers.push_back(
      {"moe",
       std::make_unique<nn::MixtureOfExperts>(nn::MoeOptions{
           .router = {.dim = 32, .num_experts = 8, .top_k = 2, .normalises = true, .init = init},
           .hidden_dim = 64,
           .gate_init = init,
           .output_init = init}),
       "moe", 32});
  return layers;
}

struct GroupedPass {
  Tensor y, dx;
};
GroupedPass pass_through(ModelPart& part, const Tensor& values, const Tensor& dy) {
  const Tensor x = values.clone().set_requires_grad(true);
  const Tensor y = (*part.layers()[0].module)(x, Batch());
  y.backward(dy);
  return {y.detach(), x.grad()};
}

TEST(GroupedConverters, ComputeTheSameWhereExpertsAreDealtToRanks) {
  open_plugins();
  for (const char* name : {kGroupedFloat8, kGroupedMx})
    for (const int ranks : {2, 4}) {
      {  // opened before the ranks' threads start
        ModelPart opens(narrow_mixture());
        convert_experts(opens, name, emulated(name, {"experts"}));
      }
      run_ranks(expert_test::expert_grid({.dp_shard = ranks}, ranks), [&](const dist::Mesh& mesh) {
        const std::string what = std::string(name) + ", " + std::to_string(ranks) + " ranks";
        const auto device = make_cpu();
        const TransformContext context{.mesh = mesh, .device = *device};
        ModelPart part(narrow_mixture()), whole(narrow_mixture()), wide(narrow_mixture());
        for (ModelPart* one : {&part, &whole})
          create<Converter>(name, emulated(name, {"experts"}), context)->apply(*one, context);
        expert_test::make_expert(context, ranks)->apply(part, context);
        for (ModelPart* one : {&part, &whole, &wide})
          one->materialize(c10::kCPU, at::kFloat, kSeed);
        const int64_t count = 9;
        std::vector<Tensor> xs, dys;
        for (int r = 0; r < ranks; ++r)
          xs.push_back(tokens_of(count, r, 0)), dys.push_back(tokens_of(count, r, 0.5));
        const auto mine = static_cast<size_t>(mesh.rank());
        const GroupedPass here = pass_through(part, xs[mine], dys[mine]);
        const GroupedPass there = pass_through(whole, at::cat(xs, 1), at::cat(dys, 1));
        const GroupedPass exact = pass_through(wide, at::cat(xs, 1), at::cat(dys, 1));
        const auto error = [](const Tensor& found, const Tensor& expected) {
          return ((found - expected).norm() / expected.norm()).item<double>();
        };
        const int64_t first = count * mesh.rank();
        EXPECT_LT(error(here.y, there.y.narrow(1, first, count)), 1e-6) << what;
        EXPECT_LT(error(here.dx, there.dx.narrow(1, first, count)), 1e-6) << what;
        EXPECT_GT(error(there.y, exact.y), 1e-3) << what;
        EXPECT_LT(error(there.y, exact.y), 0.1) << what;
        for (size_t i = 0; i < part.parameters().size(); ++i) {
          const nn::Parameter &own = *part.parameters()[i], &all = *whole.parameters()[i];
          if (own.shardings().empty()) continue;  // the gate's, of this rank's tokens
          EXPECT_EQ(own.slice().sizes[0], 8 / ranks);
          EXPECT_LT(error(own.grad(), all.grad().narrow(0, own.slice().offsets[0], 8 / ranks)),
                    1e-6)
              << what << ": " << own.name();
        }
      });
    }
}

}  // namespace
}  // namespace titan::testing::grouped_converter_test
