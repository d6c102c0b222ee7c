// Which parallelism plugins a job gets, and which of their options the core's keys set.
#include <gtest/gtest.h>

#include "core/config/sources/toml_writer.h"
#include "tests/core/config/fake_lookup.h"

namespace titan::core {
namespace {

std::vector<Selection> transforms_of(std::vector<std::string> arguments, int world_size) {
  arguments.push_back("--activation_checkpoint.mode=none");
  return resolve_arguments(std::move(arguments), world_size).config.transforms;
}

std::vector<std::string> parallelisms(std::vector<std::string> arguments, int world_size) {
  std::vector<std::string> names;
  for (const Selection& chosen : transforms_of(std::move(arguments), world_size))
    names.push_back(chosen.kind + ":" + chosen.name);
  return names;
}
Value options(std::vector<std::string> arguments, int world_size, const std::string& name) {
  for (const Selection& chosen : transforms_of(std::move(arguments), world_size))
    if (chosen.name == name) return chosen.options;
  return Value();
}
using Names = std::vector<std::string>;

TEST(Parallelisms, FollowFromTheDegrees) {
  EXPECT_EQ(parallelisms({}, 1), Names{});
  EXPECT_EQ(parallelisms({}, 4), Names{"parallelism:fsdp"});
  EXPECT_EQ(parallelisms({"--parallelism.data_parallel_replicate_degree=4"}, 4),
            Names{"parallelism:ddp"});
  EXPECT_EQ(parallelisms({"--parallelism.data_parallel_replicate_degree=2"}, 4),
            Names{"parallelism:fsdp"});
  EXPECT_EQ(parallelisms({"--parallelism.tensor_parallel_degree=2"}, 2),
            Names{"parallelism:tensor"});
  EXPECT_EQ(parallelisms({"--parallelism.tensor_parallel_degree=2"}, 4),
            (Names{"parallelism:tensor", "parallelism:fsdp"}));
  EXPECT_EQ(parallelisms({"--parallelism.tensor_parallel_degree=2",
                          "--parallelism.data_parallel_replicate_degree=2"},
                         4),
            (Names{"parallelism:tensor", "parallelism:ddp"}));
}

TEST(Parallelisms, PipelineAndContextComeWithTheirKeys) {
  const std::string p = "--parallelism.";
  const std::vector<std::string> staged = {
      p + "pipeline_parallel_degree=2", p + "pipeline_parallel_microbatch_size=2",
      p + "pipeline_parallel_first_stage_less_layers=0", "--training.local_batch_size=4"};
  EXPECT_EQ(parallelisms(staged, 2), Names{"parallelism:pipeline"});
  const Value pipeline = options(staged, 2, "pipeline");
  EXPECT_EQ(pipeline.at("microbatch_size"), Value(2));
  EXPECT_EQ(pipeline.at("first_stage_less_layers"), Value(0));
  EXPECT_TRUE(pipeline.at("modules_per_stage").is_null());

  const JobConfig config = resolve_arguments(staged, 2).config;
  ASSERT_TRUE(config.pipeline_plan);
  EXPECT_EQ(config.pipeline_plan->shape.num_microbatches, 2);
  EXPECT_EQ(config.pipeline_plan->rank_of_stage, (std::vector<int>{0, 1}));
  EXPECT_FALSE(resolve_arguments({}, 1).config.pipeline_plan);

  // context parallelism needs sharded parameters too: its ranks hold gradients of different tokens
  const std::vector<std::string> cut = {p + "context_parallel_degree=2",
                                        p + "context_parallel_rotate_method=alltoall",
                                        p + "context_parallel_load_balancer=None"};
  EXPECT_EQ(parallelisms(cut, 2), (Names{"parallelism:context", "parallelism:fsdp"}));
  const Value context = options(cut, 2, "context");
  EXPECT_EQ(context.at("rotate_method"), Value("alltoall"));
  EXPECT_EQ(context.at("load_balancer"), Value("none"));
}

TEST(Parallelisms, AScheduleHasASectionOfItsOwn) {
  const JobConfig config =
      resolve_arguments({"--parallelism.pipeline_parallel_degree=2",
                         "--parallelism.pipeline_parallel_schedule=ACME/Staggered",
                         "--pipeline_schedule.acme/staggered.depth=3"},
                        2)
          .config;
  EXPECT_EQ(config.pipeline_schedule.name, "acme/staggered");
  EXPECT_EQ(config.pipeline_schedule.options.at("depth"), Value(3));
  const Value& section = config.resolved.at("pipeline_schedule").at("acme/staggered");
  EXPECT_EQ(section.at("depth"), Value(3));
  EXPECT_EQ(config.resolved.at("parallelism").at("pipeline_parallel_schedule"),
            Value("acme/staggered"));
}

TEST(Parallelisms, OneRankThatCastsOrOffloadsUsesTheShardingPluginToo) {
  EXPECT_EQ(parallelisms({"--training.mixed_precision_param=bfloat16"}, 1),
            Names{"parallelism:fsdp"});
  EXPECT_EQ(parallelisms({"--training.enable_cpu_offload"}, 1), Names{"parallelism:fsdp"});
  EXPECT_EQ(parallelisms({"--training.dtype=float64"}, 1), Names{});
  EXPECT_EQ(
      parallelisms({"--training.mixed_precision_param=bfloat16", "--training.dtype=float64"}, 1),
      Names{});
}

TEST(Parallelisms, TheirOptionsComeFromTheKeysOfTorchtitan) {
  const Value fsdp =
      options({"--parallelism.fsdp_reshard_after_forward=always",
               "--training.mixed_precision_param=bfloat16", "--training.enable_cpu_offload"},
              2, "fsdp");
  EXPECT_EQ(fsdp.at("reshard_after_forward"), Value("always"));
  EXPECT_EQ(fsdp.at("param_dtype"), Value("bfloat16"));
  EXPECT_EQ(fsdp.at("reduce_dtype"), Value("float32"));
  EXPECT_EQ(fsdp.at("cpu_offload"), Value(true));
  EXPECT_EQ(fsdp.at("own"), Value(1));
  const Value in_double = options({"--training.dtype=float64"}, 2, "fsdp");
  EXPECT_EQ(in_double.at("param_dtype"), Value("as_stored"));
  const Value tensor = options(
      {"--parallelism.tensor_parallel_degree=2", "--parallelism.disable_loss_parallel",
       "--parallelism.enable_async_tensor_parallel", "--parallelism.tensor.no_sequence_parallel"},
      2, "tensor");
  EXPECT_EQ(tensor.at("loss_parallel"), Value(false));
  EXPECT_EQ(tensor.at("async"), Value(true));
  EXPECT_EQ(tensor.at("sequence_parallel"), Value(false));
}

TEST(Parallelisms, AnotherPluginCanServeAnAxis) {
  EXPECT_EQ(parallelisms({"--parallelism.tensor_parallel_degree=2",
                          "--parallelism.tensor_parallel=acme/tensor"},
                         2),
            Names{"parallelism:acme/tensor"});
  EXPECT_EQ(parallelisms({"--parallelism.further=acme/tensor"}, 1),
            Names{"parallelism:acme/tensor"});
  const Value told =
      options({"--parallelism.tensor_parallel_degree=2", "--parallelism.tensor_parallel",
               "acme/tensor", "--parallelism.disable_loss_parallel"},
              2, "acme/tensor");
  EXPECT_EQ(told.at("loss_parallel"), Value(false));
  EXPECT_NE(errors_of(kBase, {"--parallelism.data_parallel=fsdq"}, 2).find("did you mean 'fsdp'"),
            std::string::npos);
}

TEST(Parallelisms, OfStrangersBringAxesAndTakeKeysThatWeHaveNotBuilt) {
  const std::vector<std::string> asked = {"--debug.moe_force_load_balance"};
  EXPECT_NE(errors_of(kBase, asked, 4).find("without experts is not built yet"), std::string::npos);
  std::vector<std::string> provided = asked;
  provided.push_back("--parallelism.expert_parallel_degree=2");
  provided.push_back("--parallelism.expert_parallel=acme/experts");
  EXPECT_TRUE(messages(diagnostics_of(kBase, provided, 4), Severity::not_built).empty());
  const dist::Grid grid = resolve_arguments(provided, 4).config.layout.grid;
  EXPECT_EQ(grid.ranks(2, "ep"), (std::vector<int>{2, 3}));
  EXPECT_EQ(grid.size("fsdp-ep"), 2);
  EXPECT_NE(
      errors_of(kBase,
                {"--parallelism.further=acme/experts", "--parallelism.acme/experts.degree=3"}, 4)
          .find("option 'degree': axis 'ep' cannot have 3 of the 4 ranks"),
      std::string::npos);
}

TEST(Parallelisms, ExpertsAreCutByWhoeverTakesTheKey) {
  std::vector<std::string> job = {"--parallelism.tensor_parallel_degree=2",
                                  "--parallelism.expert_tensor_parallel_degree=2"};
  EXPECT_EQ(parallelisms(job, 2), (Names{"parallelism:tensor", "parallelism:expert"}));
  EXPECT_EQ(options(job, 2, "expert").at("tensor_degree"), Value(2));
  EXPECT_TRUE(messages(diagnostics_of(kBase, job, 2), Severity::not_built).empty());
  job.push_back("--parallelism.expert_parallel=acme/experts");
  EXPECT_NE(
      errors_of(kBase, job, 2).find("with this plugin of expert parallelism is not built yet"),
      std::string::npos);
}

TEST(Parallelisms, TheResolvedJobResolvesToItself) {
  const Value once =
      resolve_arguments({"--parallelism.tensor_parallel_degree=2",
                         "--parallelism.tensor.no_sequence_parallel", "--parallelism.fsdp.own=7"},
                        4)
          .config.resolved;
  const Value* own = once.at("parallelism").find("fsdp");
  ASSERT_TRUE(own);
  EXPECT_EQ(*own, Value::map({{"own", 7}}));  // without what the core's keys imply
  const Resolution again = resolve_text(to_toml(once), {}, 4);
  EXPECT_EQ(again.config.resolved, once);
}

TEST(Parallelisms, TheDefaultTypeOfACpuIsThatOfTheParametersAndIsNoted) {
  const Resolution untouched = resolve_arguments({}, 2);
  EXPECT_EQ(untouched.config.training.mixed_precision_param, Dtype::float32);
  bool is_noted = false;
  for (const Diagnostic& message : untouched.messages)
    is_noted = is_noted || message.message.find("computes in float32") != std::string::npos;
  EXPECT_TRUE(is_noted);
}

}  // namespace
}  // namespace titan::core
