// core/exchange/model_options.h: the differences between a checkpoint's model options and this
// run's, using the declarations of the built plugins.
#include "core/exchange/model_options.h"

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan::core {
namespace {

using testing::create;
using testing::error_of;
using testing::holds;
using testing::plugin_registry;

Value tiny(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 32},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"vocab_size", 64},
                              {"multiple_of", 8},
                              {"rope_theta", 10000.0},
                              {"norm_eps", 1e-5}});
  for (const auto& [name, value] : changed) options[name] = value;
  return options;
}

/// As resolve() returns them, with every option.
JobConfig job(const Value& options, const char* name = "llama3") {
  JobConfig config;
  config.model.name = name;
  const Schema& schema = plugin_registry().component("model", name).schema;
  config.model_plugin = {"model", name, schema.read(schema.make(options).get()), {}};
  config.training.seq_len = 64;
  return config;
}

/// As a manifest holds them, without unset options.
Value saved(const JobConfig& config) {
  Value model = Value::map({{"name", config.model.name}, {"hf_assets_path", "./assets"}});
  for (const auto& [name, value] : config.model_plugin.options.as_map())
    if (!value.is_null()) model[name] = value;
  return Value::map({{"model", model}});
}

std::vector<std::string> differences(const Value& there, const JobConfig& here) {
  const auto model =
      create<Model>(here.model_plugin.name, here.model_plugin.options, {.seq_len = 64});
  return model_differences(there, here, *model, plugin_registry());
}

using Lines = std::vector<std::string>;

TEST(ModelOptions, ListsWhatShapesDoNotTellWithBothValues) {
  const Value there = saved(job(tiny()));
  EXPECT_EQ(differences(there, job(tiny())), Lines());
  EXPECT_EQ(differences(there, job(tiny({{"n_heads", 8}}))),
            Lines{"model.n_heads is 4 there and 8 here"});
  EXPECT_EQ(differences(there, job(tiny({{"rope_theta", 500000.0}}))),
            Lines{"model.rope_theta is 10000.0 there and 5e+05 here"});
  EXPECT_EQ(differences(there, job(tiny({{"norm_eps", 1e-6}}))),
            Lines{"model.norm_eps is 1e-05 there and 1e-06 here"});
  EXPECT_EQ(
      differences(there, job(tiny({{"rope_scaling", Value::map({{"scaling_factor", 8.0}})}}))),
      Lines{"model.rope_scaling.scaling_factor is 1.0 there and 8.0 here"});
  EXPECT_EQ(differences(there, job(tiny({{"attn_type", "varlen"}}))),
            Lines{"model.attn_type is \"sdpa\" there and \"varlen\" here"});
  EXPECT_EQ(differences(there, job(tiny({{"norm_eps", 1e-6}, {"n_heads", 8}}))).size(), 2u);
}

TEST(ModelOptions, PassesWhatChangesNoResult) {
  const Value there = saved(job(tiny()));
  for (const Value::Member& harmless : {Value::Member{"depth_init", false},
                                        {"max_position_embeddings", 77},
                                        {"n_kv_heads", 4},
                                        {"head_dim", 8},
                                        {"rope_scaling", Value::map({{"low_freq_factor", 2.0}})}})
    EXPECT_EQ(differences(there, job(tiny({harmless}))), Lines()) << harmless.first;
  // a harmless difference is not named next to a real one
  EXPECT_EQ(differences(there, job(tiny({{"depth_init", false}, {"norm_eps", 1e-6}}))),
            Lines{"model.norm_eps is 1e-05 there and 1e-06 here"});
}

TEST(ModelOptions, TakesTheSameNetworkUnderAnotherName) {
  const Value there = saved(job(tiny()));
  EXPECT_EQ(differences(there, job(tiny(), "llama2")), Lines());
  EXPECT_EQ(differences(there, job(tiny({{"norm_eps", 1e-6}}), "llama2")),
            (Lines{"model.name is llama3 there and llama2 here",
                   "model.norm_eps is 1e-05 there and 1e-06 here"}));
}

TEST(ModelOptions, DoesNotJudgeOptionsThatAnOlderProgramDidNotKnow) {
  Value there = saved(job(tiny()));
  std::erase_if(there["model"].as_map(), [](const auto& member) {
    return member.first == "norm_eps" || member.first == "rope_scaling";
  });
  EXPECT_EQ(differences(there, job(tiny({{"norm_eps", 1e-6}}))), Lines());
  EXPECT_EQ(differences(Value::map(), job(tiny())),
            Lines{"its manifest does not say which model it was saved with"});
}

TEST(ModelOptions, ComparesConvertersThatChangeWhatWeightsMean) {
  const Value lora =
      Value::map({{"rank", 4}, {"alpha", 16.0}, {"targets", Value::list({"wq", "wv"})}});
  JobConfig here = job(tiny());
  here.transforms = {{"converter", "lora", lora, {}}};
  Value there = saved(here);
  EXPECT_EQ(differences(there, here), Lines())
      << "weights without adapters can start a run with adapters";
  there["converter"] = Value::map({{"lora", lora}});
  EXPECT_EQ(differences(there, here), Lines());
  here.transforms[0].options["targets"] = Value::list({"wv", "wq"});
  EXPECT_EQ(differences(there, here), Lines());
  here.transforms[0].options["alpha"] = 32.0;
  EXPECT_EQ(differences(there, here), Lines{"converter.lora.alpha is 16.0 there and 32.0 here"});
}

TEST(ModelOptions, AreTakenOnTrustWhenAsked) {
  const Value there = saved(job(tiny()));
  JobConfig here = job(tiny({{"norm_eps", 1e-6}}));
  const auto model = create<Model>("llama3", here.model_plugin.options, {.seq_len = 64});
  const Error error = error_of([&] {
    check_model_options(there, here, *model, plugin_registry(), "the checkpoint in 'X'");
  });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_EQ(error.message(),
            "the checkpoint in 'X' was saved with another model than this configuration's:\n"
            "  model.norm_eps is 1e-05 there and 1e-06 here\n"
            "  set these options to the checkpoint's values, or accept the differences with "
            "checkpoint.take_on_trust = [\"model_options\"]");
  here.checkpoint.take_on_trust = {"model_options"};
  const std::string warning = check_model_options(there, here, *model, plugin_registry(), "X");
  EXPECT_TRUE(holds(warning, "model.norm_eps is 1e-05 there and 1e-06 here"));
  EXPECT_EQ(check_model_options(saved(here), here, *model, plugin_registry(), "X"), "");
}

}  // namespace
}  // namespace titan::core
