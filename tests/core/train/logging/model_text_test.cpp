// The output of [model] print_after_conversion.
#include "core/train/logging/model_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/transform.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

ModelPart small_part(const Value& more) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 3},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"vocab_size", 128},
                              {"multiple_of", 96}});
  for (const auto& [key, value] : more.as_map()) options[key] = value;
  return ModelPart(titan::testing::create<Model>("llama3", options, {.seq_len = 8})->build());
}

TEST(ModelText, NamesModulesWithClassesShapesAndWhoComputes) {
  ModelPart part = small_part(Value::map());
  const dist::Mesh mesh;
  const auto device = titan::testing::make_cpu();
  const TransformContext context{.mesh = mesh, .device = *device};
  const auto convert = [&](const char* name, const Value& options) {
    titan::testing::create<Converter>(name, options, context)->apply(part, context);
  };
  convert("quantize.linear.float8",
          Value::map({{"emulate", true}, {"filter_fqns", Value::list({"layers.2"})}}));
  convert("lora", Value::map({{"rank", 2}, {"targets", Value::list({"wq"})}}));
  const std::string text = model_text(part);
  for (const char* line :
       {"tok_embeddings: Embedding, weight [128, 64] frozen\n",
        "layers.0 to layers.1, 2 layers that are alike: TransformerBlock\n",
        "\nlayers.2: TransformerBlock\n",
        "  attention.wq: Linear, weight [64, 64] frozen, computed by quantize.linear.float8, lora "
        "around it\n",
        "  attention.wq: Linear, weight [64, 64] frozen, computed by lora around it\n",
        "  attention.wq.lora_a: Linear, weight [2, 64]\n",
        "  attention.wk: Linear, weight [32, 64] frozen, computed by quantize.linear.float8\n",
        "output: OutputHead, output.weight [128, 64] frozen\n",
        "  norm: RmsNorm, weight [64] frozen"})
    EXPECT_THAT(text, ::testing::HasSubstr(line));
}

TEST(ModelText, GivesTheFullNameOfAWeightThatAnotherLayerOwns) {
  ModelPart part = small_part(Value::map({{"enable_weight_tying", true}}));
  EXPECT_THAT(model_text(part),
              ::testing::HasSubstr("output: OutputHead, tok_embeddings.weight [128, 64]"));
}

}  // namespace
}  // namespace titan::core
