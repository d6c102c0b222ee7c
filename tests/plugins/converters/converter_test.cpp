// Which layers the converters change, and what they refuse.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <titan/nn/linear.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

constexpr const char* kFloat8 = "quantize.linear.float8";
constexpr const char* kMx = "quantize.linear.mx";

/// dim 64: feed-forward 64 x `hidden`, two blocks.
ModelPart small_part(int64_t hidden = 96) {
  const Value options = Value::map({{"dim", 64},
                                    {"n_layers", 2},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"vocab_size", 128},
                                    {"multiple_of", hidden}});
  return ModelPart(create<Model>("llama3", options, {.seq_len = kSeqLen})->build());
}

void convert(ModelPart& part, const char* name, const Value& options,
             at::ScalarType compute_dtype = at::kFloat) {
  const dist::Mesh mesh;
  const auto device = make_cpu();
  const TransformContext context{.mesh = mesh, .device = *device, .compute_dtype = compute_dtype};
  create<Converter>(name, options, context)->apply(part, context);
}

/// The paths of the converted linear layers.
std::vector<std::string> converted(ModelPart& part) {
  std::vector<std::string> paths;
  for (Layer& layer : part.layers())
    layer.module->visit_modules(
        [&](const std::string& path, nn::Module& module) {
          auto* linear = dynamic_cast<nn::Linear*>(&module);
          if (linear && !linear->has_plain_kernel()) paths.push_back(path);
        },
        layer.name);
  return paths;
}

Error refusal(const char* name, const Value& options, at::ScalarType dtype = at::kFloat) {
  return error_of([&] {
    ModelPart part = small_part();
    convert(part, name, options, dtype);
  });
}

TEST(QuantizeConverters, TakeEveryLinearLayerButTheHead) {
  for (const auto& [name, options] : {std::pair{kFloat8, Value::map({{"emulate", true}})},
                                      {kMx, Value::map({{"recipe_name", "mxfp8_emulated"}})}}) {
    ModelPart part = small_part();
    convert(part, name, options);
    EXPECT_EQ(converted(part).size(), 14u) << name;
  }
}

TEST(QuantizeConverters, LeaveAloneWhatAFilterNames) {
  ModelPart part = small_part();
  convert(part, kFloat8,
          Value::map({{"emulate", true},
                      {"filter_fqns", Value::list({"attention.wq", "layers.1", "output"})}}));
  const std::vector<std::string> paths = converted(part);
  EXPECT_EQ(paths.size(), 6u);
  for (const std::string& path : paths) {
    EXPECT_TRUE(path.starts_with("layers.0.")) << path;
    EXPECT_FALSE(path.ends_with("wq")) << path;
  }
}

TEST(QuantizeConverters, LeaveAloneWhatDoesNotDivide) {
  const Value emulated = Value::map({{"recipe_name", "mxfp8_emulated"}});
  ModelPart odd = small_part(100);  // not a multiple of 16
  convert(odd, kFloat8, Value::map({{"emulate", true}}));
  EXPECT_EQ(converted(odd).size(), 8u);
  ModelPart half = small_part(80);  // a multiple of 16, not of 32
  convert(half, kMx, emulated);
  EXPECT_EQ(converted(half).size(), 8u);
}

TEST(QuantizeConverters, RefuseAFilterThatMatchesNothing) {
  const Error error = refusal(
      kFloat8, Value::map({{"emulate", true}, {"filter_fqns", Value::list({"atention.wq"})}}));
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(),
                    "quantize.linear.float8.filter_fqns: 'atention.wq' matches no "
                    "linear layer; did you mean 'attention.wq'?"));
  const Error far = refusal(
      kFloat8, Value::map({{"emulate", true}, {"filter_fqns", Value::list({"convolution_3"})}}));
  EXPECT_TRUE(holds(far.what(), "a filter is a part of a path such as 'layers.0.attention.wq'"));
}

TEST(QuantizeConverters, RefuseToConvertNothing) {
  const Error error =
      refusal(kFloat8, Value::map({{"emulate", true}, {"filter_fqns", Value::list({"layers"})}}));
  EXPECT_TRUE(holds(error.what(),
                    "nothing to convert among 14 linear layers, 14 excluded by "
                    "filter_fqns"));
  const Error small = refusal(
      kFloat8,
      Value::map({{"emulate", true}, {"filter_fqns", Value::list({"auto_filter_small_kn"})}}));
  EXPECT_TRUE(holds(small.what(), "14 too small for a speedup"));
}

TEST(QuantizeConverters, RefuseADeviceThatCannot) {
  const Error float8 = refusal(kFloat8, Value::map());
  EXPECT_EQ(float8.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(float8.what(), "set quantize.linear.float8.emulate = true"));
  const Error mx = refusal(kMx, Value::map({{"recipe_name", "mxfp8_cublas_rceil"}}));
  EXPECT_TRUE(holds(mx.what(), "set quantize.linear.mx.recipe_name = \"mxfp8_emulated_rceil\""));
}

TEST(QuantizeConverters, RefuseRecipesThatDoNotFit) {
  const Error gather = refusal(kFloat8, Value::map({{"emulate", true},
                                                    {"recipe_name", "rowwise"},
                                                    {"enable_fsdp_float8_all_gather", true}}));
  EXPECT_TRUE(holds(gather.what(), "works with recipe_name = \"tensorwise\" only, got 'rowwise'"));
  const Error half = refusal(
      kFloat8, Value::map({{"emulate", true}, {"enable_fsdp_float8_all_gather", true}}), at::kHalf);
  EXPECT_TRUE(holds(half.what(), "training.mixed_precision_param"));
  const Error rule =
      refusal(kFloat8, Value::map({{"emulate", true},
                                   {"recipe_name", "rowwise_with_gw_hp"},
                                   {"filter_fqns", Value::list({"auto_filter_small_kn"})}}));
  EXPECT_TRUE(holds(rule.what(), "has no rule for recipe 'rowwise_with_gw_hp'"));
}

const Value kEmulatedFloat8 = Value::map({{"emulate", true}});
const Value kEmulatedMx = Value::map({{"recipe_name", "mxfp8_emulated"}});

TEST(QuantizeConverters, RefuseALayerThatAnotherConverterHas) {
  ModelPart part = small_part();
  convert(part, kFloat8, kEmulatedFloat8);
  const Error error = error_of([&] { convert(part, kMx, kEmulatedMx); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(),
                    "quantize.linear.mx: 'layers.0.attention.wq' is computed by "
                    "quantize.linear.float8 already; name the layer in "
                    "quantize.linear.mx.filter_fqns"));
}

TEST(QuantizeConverters, ComeBeforeAdapters) {
  const Value targets = Value::map({{"targets", Value::list({"wq"})}});
  ModelPart adapted = small_part();
  convert(adapted, "lora", targets);
  const Error error = error_of([&] { convert(adapted, kFloat8, kEmulatedFloat8); });
  EXPECT_TRUE(holds(error.what(),
                    "'layers.0.attention.wq' is wrapped by lora already; put "
                    "quantize.linear.float8 before lora in model.converters"));
  ModelPart both = small_part();
  convert(both, kFloat8, kEmulatedFloat8);
  convert(both, "lora", targets);
  std::string owners;
  both.layers()[1].module->visit_modules([&](const std::string& path, nn::Module& module) {
    if (path == "attention.wq") owners = dynamic_cast<nn::Linear&>(module).kernel_owners().text();
  });
  EXPECT_EQ(owners, "quantize.linear.float8, lora around it");
}

TEST(QuantizeConverters, ShareAModelByTheirFilters) {
  ModelPart part = small_part();
  convert(part, kFloat8,
          Value::map({{"emulate", true}, {"filter_fqns", Value::list({"feed_forward"})}}));
  convert(
      part, kMx,
      Value::map({{"recipe_name", "mxfp8_emulated"}, {"filter_fqns", Value::list({"attention"})}}));
  EXPECT_EQ(converted(part).size(), 14u);
}

TEST(QuantizeConverters, ForgetLayersThatAPipelineDrops) {
  const dist::Mesh mesh;
  const auto device = make_cpu();
  const TransformContext context{.mesh = mesh, .device = *device};
  const auto converter = create<Converter>(kFloat8, Value::map({{"emulate", true}}), context);
  ModelPart part = small_part();
  converter->apply(part, context);
  part.keep({1});
  part.materialize(c10::kCPU, at::kFloat, kSeed);
  dynamic_cast<AfterOptimizerStep&>(*converter).after_optimizer_step();
  const at::Tensor y = part.forward(at::ones({1, kSeqLen, 64}), make_rows(0, 1));
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace titan::testing
