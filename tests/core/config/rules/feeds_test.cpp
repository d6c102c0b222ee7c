// Plugin options that take their values from keys of the core, as the plugin declares.
#include "core/config/rules/feeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/job_view.h>

#include "core/config/fake_lookup.h"

namespace titan::core {
namespace {

struct FedOptions {
  bool async = false, enable_async_tensor_parallel = false;
  std::string dtype = "own";
  int64_t stages = 0;
};

Schema declared(const std::string& key) {
  Schema schema;
  SchemaBuilder(schema)
      .option("async", &FedOptions::async, "")
      .fed_by(key)
      .option("enable_async_tensor_parallel", &FedOptions::enable_async_tensor_parallel, "")
      .option("dtype", &FedOptions::dtype, "")
      .fed_by("training.dtype",
              [](const Value& core, const JobView& job) {
                return job.core("debug.seed").is_null() ? Value() : core;
              })
      .option("stages", &FedOptions::stages, "")
      .fed_by("training.steps",
              [](const Value&, const JobView& job) { return Value(job.ranks("fsdp")); });
  return schema;
}

TEST(Feeds, FollowTheKeysThatTheyName) {
  JobConfig config;
  config.parallelism.enable_async_tensor_parallel = true;
  config.layout.shard = 3;
  config.layout.context = 2;
  const Schema schema = declared("parallelism.enable_async_tensor_parallel");
  EXPECT_EQ(to_json(fed_options(schema, config)), R"({"async":true,"stages":6})")
      << "not by name; null keeps the default";
  config.debug.seed = 1;
  EXPECT_EQ(fed_options(schema, config).at("dtype"), Value("float32"));
}

TEST(Feeds, OfAGroupAreWhatTheRunHas) {
  const std::string groups = "[optimizer.groups.a]\npatterns = [\"x\"]\n";
  const auto nesterov = [&](const std::string& optimizer) {
    const JobConfig config =
        resolve_text(kBase + "[optimizer]\nname = \"SGD\"\n" + optimizer + groups).config;
    return config.optimizer_groups.at(0).optimizer.options.at("nesterov");
  };
  EXPECT_EQ(nesterov("nesterov = true\n"), Value(true)) << "set by the run, not by the key";
  EXPECT_EQ(nesterov(""), Value(false));
}

TEST(Feeds, NeedKeysThatThereAre) {
  try {
    fed_options(declared("parallelism.asink"), JobConfig());
    FAIL() << "there is no such key";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    EXPECT_STREQ(error.what(),
                 "the core has no key 'parallelism.asink' that options could be derived from");
  }
}

TEST(ComponentRules, SeeTheOptionsOfOtherComponents) {
  Component component{.kind = "parallelism", .name = "acme/p"};
  std::string seen;
  component.check = [&](const void*, const JobView& job, RuleReport&) {
    seen = to_json(job.option("converter", "acme/c", "rank")) +
           to_json(job.option("converter", "acme/c", "other")) +
           to_json(job.option("converter", "acme/d", "rank")) +
           to_json(job.option("model", "acme/c", "rank"));
  };
  JobConfig config;
  config.transforms.push_back(
      {.kind = "converter", .name = "acme/c", .options = Value::map({{"rank", 3}}), .where = {}});
  Diagnostics found;
  check_component(component, nullptr, "parallelism.acme/p", {}, {config, {}, found});
  EXPECT_EQ(seen, "3nullnullnull");
  Schema schema;
  SchemaBuilder(schema)
      .option("stages", &FedOptions::stages, "")
      .fed_by("training.steps", [](const Value&, const JobView& job) {
        return job.option("converter", "acme/c", "rank");
      });
  try {
    fed_options(schema, config);
    FAIL() << "an option takes its value from another component's";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    EXPECT_STREQ(
        error.what(),
        "an option cannot be derived from option 'rank' of converter 'acme/c', only from keys "
        "of the core");
  }
}

TEST(ComponentRules, ReportAtTheOptionOrAtTheKeyThatFeedsIt) {
  Component component{.kind = "parallelism", .name = "acme/p"};
  component.schema = declared("parallelism.enable_async_tensor_parallel");
  component.check = [](const void*, const JobView& job, RuleReport& report) {
    report.error("stages", "stages are " + to_json(job.core("training.steps")), "take fewer");
    report.error("async", "async is on");
    report.error("training.seq_len", "too long");
    report.error("debug.seed", "is reported already");
  };
  const auto file = std::make_shared<const SourceText>();
  GivenValues given;
  given.put({"parallelism", "acme/p", "stages"},
            {Value(3), {}, {.source = file, .line = 3, .column = 1}, true});
  given.put({"parallelism", "enable_async_tensor_parallel"},
            {Value(true), {}, {.source = file, .line = 5, .column = 1}, true});
  given.put({"debug", "seed"}, {Value("x"), {}, {.source = file, .line = 6, .column = 1}, false});
  JobConfig config;
  Diagnostics found;
  check_component(component, nullptr, "parallelism.acme/p",
                  {.source = file, .line = 1, .column = 1}, {config, given, found});
  std::vector<std::string> texts;
  for (const Diagnostic& d : found.sorted())
    texts.push_back(std::to_string(d.where.line) + " " + d.message + " " + d.hint);
  EXPECT_THAT(texts, ::testing::ElementsAre("1 too long ", "3 stages are 10000 take fewer",
                                            "5 async is on "));
}

}  // namespace
}  // namespace titan::core
