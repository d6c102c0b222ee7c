// The rules of the command line, one by one.
#include "core/config/sources/command_line.h"

#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"

namespace titan::core {
namespace {

std::string first_error(std::vector<std::string> arguments) {
  const auto errors = messages(diagnostics_of(kBase, std::move(arguments)), Severity::error);
  return errors.empty() ? "" : errors.front();
}
JobConfig job(std::vector<std::string> arguments) {
  return resolve_arguments(std::move(arguments)).config;
}

TEST(CommandLine, ValueFollowsOrIsAttached) {
  EXPECT_EQ(job({"--training.steps", "5"}).training.steps, 5);
  EXPECT_EQ(job({"--training.steps=5"}).training.steps, 5);
  EXPECT_EQ(job({"--training.global_batch_size", "-1"}).training.global_batch_size, -1);
}

TEST(CommandLine, UnderscoreAndDashAreTheSame) {
  EXPECT_EQ(job({"--training.seq-len", "128"}).training.seq_len, 128);
  EXPECT_EQ(job({"--lr-scheduler.warmup-steps=7"}).lr_scheduler.options.at("warmup_steps"),
            Value(7));
}

TEST(CommandLine, NestedKeysAreFlags) {
  EXPECT_EQ(job({"--training.dataloader.prefetch_factor", "2"}).training.dataloader.prefetch_factor,
            2);
  EXPECT_EQ(
      job({"--model.converters", "quantize.linear.mx", "--quantize.linear.mx.filter_fqns", "a"})
          .transforms.at(0)
          .options.at("filter_fqns"),
      Value(Value::List{"a"}));
}

TEST(CommandLine, LastOfARepeatedFlagWins) {
  EXPECT_EQ(job({"--training.steps", "5", "--training.steps=6"}).training.steps, 6);
}

TEST(CommandLine, NamesAreNeverCompleted) {
  EXPECT_EQ(first_error({"--training.step", "3"}), "unknown option '--training.step'");
  EXPECT_EQ(first_error({"--training"}), "unknown option '--training'");
  EXPECT_EQ(first_error({"-x"}), "unexpected argument '-x'");
}

TEST(CommandLine, BooleansAreFlags) {
  EXPECT_TRUE(job({"--metrics.save_for_all_ranks"}).metrics.save_for_all_ranks);
  EXPECT_FALSE(job({"--checkpoint.no_initial_load_model_only"}).checkpoint.initial_load_model_only);
  EXPECT_FALSE(job({"--checkpoint.no-initial-load-model-only"}).checkpoint.initial_load_model_only);
  EXPECT_TRUE(job({"--debug.deterministic=true"}).debug.deterministic);
  EXPECT_TRUE(job({"--debug.deterministic=True"}).debug.deterministic);
  EXPECT_FALSE(job({"--debug.deterministic", "--debug.deterministic=false"}).debug.deterministic);
}

TEST(CommandLine, BooleansTakeNoWordAndOnlyTrueOrFalse) {
  EXPECT_EQ(first_error({"--debug.deterministic", "true"}), "unexpected argument 'true'");
  EXPECT_EQ(first_error({"--debug.deterministic=maybe"}),
            "debug.deterministic must be a boolean, got 'maybe'");
  EXPECT_EQ(first_error({"--debug.no_deterministic=true"}),
            "'--debug.no_deterministic' takes no value");
  EXPECT_EQ(first_error({"--no_debug.deterministic"}), "unknown option '--no_debug.deterministic'");
  EXPECT_EQ(first_error({"--training.no_steps"}), "unknown option '--training.no_steps'");
}

TEST(CommandLine, AKeyWithoutItsSectionIsFound) {
  const auto hint = [](const char* flag) {
    return diagnostics_of(kBase, {flag, "3"}).sorted().front().hint;
  };
  EXPECT_EQ(hint("--lr"), "did you mean '--optimizer.lr'?");
  EXPECT_EQ(hint("--seq-len"), "did you mean '--training.seq_len' or '--validation.seq_len'?");
  EXPECT_EQ(hint("--optim.warmup_steps"), "did you mean '--lr_scheduler.warmup_steps'?");
  EXPECT_EQ(hint("--training.step"), "did you mean '--training.steps'?");
  EXPECT_EQ(hint("--config"), "did you mean '--job.config_file'?");
  EXPECT_EQ(diagnostics_of(kBase, {"train.toml"}).sorted().front().hint,
            "a configuration is named by --job.config_file train.toml");
}

TEST(CommandLine, ListIsOneWord) {
  const auto loggers = [](std::vector<std::string> arguments) {
    return job(std::move(arguments)).metrics.loggers;
  };
  EXPECT_EQ(loggers({"--metrics.loggers", "jsonl,console"}),
            (std::vector<std::string>{"jsonl", "console"}));
  EXPECT_EQ(loggers({"--metrics.loggers=jsonl, console"}),
            (std::vector<std::string>{"jsonl", "console"}));
  EXPECT_EQ(loggers({"--metrics.loggers="}), std::vector<std::string>{});
  EXPECT_EQ(loggers({"--metrics.loggers", "[]"}), std::vector<std::string>{});
  EXPECT_EQ(loggers({R"(--metrics.loggers=["jsonl", "console"])"}),
            (std::vector<std::string>{"jsonl", "console"}));
  EXPECT_EQ(loggers({"--metrics.loggers", ""}), std::vector<std::string>{});
  EXPECT_EQ(first_error({"--metrics.loggers", "jsonl", "console"}),
            "unexpected argument 'console'");
  EXPECT_EQ(job({"--dataset.jsonl.weights", "3,4"}).sources[0].dataset.options.at("weights"),
            Value::list({3, 4}));
}

TEST(CommandLine, ListOfListsIsOneWordEach) {
  const auto parts =
      job({"--parallelism.module_fqns_per_model_part", "a,b", "c,d", "--training.steps", "9"})
          .parallelism.module_fqns_per_model_part;
  EXPECT_EQ(parts, (std::vector<std::vector<std::string>>{{"a", "b"}, {"c", "d"}}));
}

TEST(CommandLine, ListOfListsMayBeOneWordOfJson) {
  const auto parts = [](const char* word) {
    return job({"--parallelism.module_fqns_per_model_part", word})
        .parallelism.module_fqns_per_model_part;
  };
  using Parts = std::vector<std::vector<std::string>>;
  EXPECT_EQ(parts(R"([["a", "b"], ["c"]])"), (Parts{{"a", "b"}, {"c"}}));
  EXPECT_EQ(parts(R"(["a", "b"])"), (Parts{{"a", "b"}})) << "a stage, as a,b is";
  EXPECT_EQ(parts("[]"), Parts{});
}

TEST(CommandLine, NoneUnsetsWhatMayBeUnset) {
  EXPECT_EQ(job({"--parallelism.context_parallel_load_balancer", "None"})
                .parallelism.context_parallel_load_balancer,
            std::nullopt);
  EXPECT_EQ(job({"--parallelism.context_parallel_load_balancer", "none"})
                .parallelism.context_parallel_load_balancer,
            std::nullopt);
  EXPECT_EQ(first_error({"--parallelism.context_parallel_load_balancer", "tailhead"}),
            "parallelism.context_parallel_load_balancer must be one of 'headtail', 'ptrr' or "
            "'None', got 'tailhead'");
  EXPECT_EQ(job({"--debug.seed", "5", "--debug.seed=None"}).debug.seed, std::nullopt);
  EXPECT_EQ(
      job({"--parallelism.module_fqns_per_model_part=None"}).parallelism.module_fqns_per_model_part,
      std::nullopt);
  EXPECT_EQ(first_error({"--training.steps", "None"}),
            "training.steps must be an integer >= 1, got 'None'");
  EXPECT_EQ(job({"--job.description", "None"}).job.description, "None");
}

TEST(CommandLine, NumbersAreRead) {
  EXPECT_EQ(first_error({"--training.steps", "3.5"}),
            "training.steps must be an integer >= 1, got '3.5'");
  EXPECT_EQ(first_error({"--training.steps", "99999999999999999999"}),
            "training.steps must be an integer >= 1, got '99999999999999999999'");
  EXPECT_EQ(first_error({"--training.steps="}), "training.steps must be an integer >= 1, got ''");
  EXPECT_EQ(job({"--training.steps", "10_000"}).training.steps, 10000);
  EXPECT_EQ(job({"--optimizer.lr", "1e-3"}).optimizer.options.at("lr"), Value(1e-3));
  EXPECT_EQ(job({"--optimizer.lr", "1"}).optimizer.options.at("lr"), Value(1.0));
  EXPECT_EQ(first_error({"--optimizer.lr", "nan"}),
            "option 'lr' of optimizer 'AdamW' must be finite, got nan");
  EXPECT_EQ(first_error({"--optimizer.lr", "inf"}),
            "option 'lr' of optimizer 'AdamW' must be finite, got inf");
}

TEST(CommandLine, WordsOutsideAListAreRefused) {
  EXPECT_EQ(first_error({"--training.dtype", "fp32"}),
            "training.dtype must be one of 'float32', 'bfloat16', 'float64', got 'fp32'");
}

TEST(CommandLine, MissingValueIsReported) {
  EXPECT_EQ(first_error({"--training.steps"}), "'--training.steps' needs a value");
  EXPECT_EQ(first_error({"--training.steps", "--debug.deterministic"}),
            "'--training.steps' needs a value");
  EXPECT_EQ(first_error({"--set"}), "--set needs section.key=VALUE");
}

TEST(CommandLine, AKeyLikeNoneOfASmallTableIsAnsweredWithAllOfThem) {
  const auto hint = [](const char* setting) {
    return diagnostics_of(kBase, {"--set", setting}).sorted().front().hint;
  };
  EXPECT_EQ(hint("validation.dataloader.zzqqxx=4"),
            "there are: num_workers, persistent_workers, pin_memory, prefetch_factor");
  EXPECT_EQ(hint("validation.dataloader.pin_memry=true"), "did you mean 'pin_memory'?");
  EXPECT_EQ(hint("training.zzqqxx=4"), "") << "too many to list";
}

TEST(CommandLine, SetTakesToml) {
  EXPECT_EQ(job({"--set", "training.steps=12"}).training.steps, 12);
  EXPECT_EQ(job({"--set=job.description=\"a b\""}).job.description, "a b");
  EXPECT_EQ(job({"--set", "metrics.loggers=[\"jsonl\"]"}).metrics.loggers,
            std::vector<std::string>{"jsonl"});
  EXPECT_EQ(job({"--training.steps", "3", "--set", "training.steps=4"}).training.steps, 4);
  EXPECT_EQ(job({"--set", "training.steps=4", "--training.steps", "3"}).training.steps, 3);
  EXPECT_EQ(first_error({"--set", "training.stepz=4"}), "unknown key 'stepz' in [training]");
  EXPECT_TRUE(first_error({"--set", "job.description=word"}).starts_with("malformed TOML"));
  EXPECT_TRUE(first_error({"--set", "training.steps=1\nx=2"}).starts_with("--set takes one line"));
}

TEST(CommandLine, OptionsOfComponentsAreFlagsWithTheirNames) {
  EXPECT_EQ(job({"--optimizer.name", "SGD", "--optimizer.nesterov", "--optimizer.momentum=0.9"})
                .optimizer.options,
            Value::map({{"lr", 0.01}, {"momentum", 0.9}, {"nesterov", true}}));
  EXPECT_EQ(job({"--training.dataset", "acme/web.text", "--dataset.acme/web.text.field", "body"})
                .sources[0]
                .dataset.options.at("field"),
            Value("body"));
  EXPECT_EQ(first_error({"--optimizer.nesterov"}), "unknown option '--optimizer.nesterov'");
}

TEST(CommandLine, EveryOldNameIsAFlag) {
  EXPECT_EQ(job({"--training.batch_size", "4"}).training.local_batch_size, 4);
  EXPECT_TRUE(job({"--metrics.no_rank_0_only"}).metrics.save_for_all_ranks);
}

TEST(CommandLine, LastConfigFileCounts) {
  EXPECT_EQ(find_config_file({"--training.steps", "3", "--job.config_file", "a.toml"}), "a.toml");
  EXPECT_EQ(find_config_file({"--job.config-file=b.toml", "--job.config_file", "a.toml"}),
            "a.toml");
  EXPECT_EQ(find_config_file({"--job.config_files=b.toml"}), std::nullopt);
}

TEST(CommandLine, CaretPointsAtTheArgument) {
  const Diagnostics diagnostics = diagnostics_of(kBase, {"--training.steps", "0"});
  EXPECT_EQ(render(diagnostics.sorted().front()),
            "command line: error: training.steps must be >= 1, got 0\n"
            "      | --training.steps 0\n"
            "      |                  ^ default 10000");
}

}  // namespace
}  // namespace titan::core
