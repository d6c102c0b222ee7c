// Resolution of a job: precedence, components, flavors, and writing and reading the resolved
// configuration.
#include "core/config/resolve.h"

#include <gtest/gtest.h>

#include <titan/settings/toml_source.h>
#include <titan/shown_text.h>

#include "core/config/fake_lookup.h"
#include "core/config/flag_help.h"
#include "core/config/sources/toml_writer.h"

namespace titan::core {
namespace {

Value model_options(const std::string& toml, std::vector<std::string> arguments = {}) {
  return resolve_text(kBase + toml, std::move(arguments)).config.model_plugin.options;
}

TEST(Resolve, CommandLineOverFileOverFlavorOverDefault) {
  EXPECT_EQ(model_options("").at("dim"), Value(256)) << "flavor debugmodel";
  EXPECT_EQ(model_options("flavor = \"8B\"\n").at("dim"), Value(4096)) << "default";
  EXPECT_EQ(model_options("dim = 512\n").at("dim"), Value(512)) << "file";
  EXPECT_EQ(model_options("dim = 512\n", {"--model.dim", "128"}).at("dim"), Value(128))
      << "command line";
  EXPECT_EQ(model_options("flavor = \"8B\"\n", {"--model.flavor", "debugmodel"}).at("n_layers"),
            Value(6));
}

TEST(Resolve, OneMemberOfATableLeavesTheOthersOfTheFlavorAlone) {
  const std::string flavor = "flavor = \"long\"\n";
  const Value file = model_options(flavor + "rope_scaling.factor = 2\n").at("rope_scaling");
  EXPECT_EQ(file.at("factor"), Value(2.0));
  EXPECT_EQ(file.at("low_freq_factor"), Value(4.0)) << "the flavor's value";
  const Value both = model_options(flavor + "rope_scaling.factor = 2\n",
                                   {"--model.rope_scaling.low_freq_factor", "3"})
                         .at("rope_scaling");
  EXPECT_EQ(both.at("factor"), Value(2.0)) << "the file's";
  EXPECT_EQ(both.at("low_freq_factor"), Value(3.0));
}

TEST(Resolve, ComponentsAreChosenFromFileAndCommandLine) {
  const JobConfig config = resolve_text(kBase + "[optimizer]\nname = \"SGD\"\nmomentum = 0.5\n",
                                        {"--model.name=llama2", "--model.flavor=7B"})
                               .config;
  EXPECT_EQ(config.optimizer.kind, "optimizer");
  EXPECT_EQ(config.optimizer.name, "SGD");
  EXPECT_EQ(config.optimizer.options.at("momentum"), Value(0.5));
  EXPECT_EQ(config.optimizer.where.to_string(), "train.toml:8:8");
  EXPECT_EQ(config.model_plugin.name, "llama2");
  EXPECT_EQ(config.model_plugin.options.at("rope_theta"), Value(10000.0));
  EXPECT_EQ(config.tokenizer.name, "huggingface");
  EXPECT_FALSE(config.tokenizer.where);
  EXPECT_EQ(config.lr_scheduler.name, "warmup_stable_decay");
  EXPECT_EQ(config.device.name, "cpu");
  EXPECT_EQ(config.sources[0].dataset.name, "jsonl");
}

TEST(Resolve, AFlagAddsItsLoggerOnce) {
  const auto names = [](std::vector<std::string> arguments) {
    std::string text;
    const JobConfig config = resolve_arguments(std::move(arguments)).config;
    for (const Selection& logger : config.loggers) text += logger.name + " ";
    return text;
  };
  EXPECT_EQ(names({}), "console jsonl ");
  EXPECT_EQ(names({"--metrics.enable_tensorboard"}), "console jsonl tensorboard ");
  EXPECT_EQ(names({"--metrics.enable_tensorboard", "--metrics.loggers=tensorboard"}),
            "tensorboard ");
  EXPECT_EQ(names({"--metrics.enable_tensorboard", "--metrics.enable_wandb"}),
            "console jsonl tensorboard wandb ");
  EXPECT_EQ(names({"--metrics.enable_wandb", "--metrics.loggers=wandb"}), "wandb ");
  EXPECT_EQ(names({"--metrics.loggers="}), "");
}

TEST(Resolve, OptionsOfNamedSectionsReachTheirComponent) {
  const JobConfig config =
      resolve_text(kBase +
                   "[dataset.jsonl]\nfield = \"body\"\nbuffer = \"2MiB\"\npatience = \"250ms\"\n"
                   "[logger.console]\nevery = 3\n")
          .config;
  EXPECT_EQ(config.sources[0].dataset.options.at("field"), Value("body"));
  EXPECT_EQ(config.sources[0].dataset.options.at("buffer"), Value(2 << 20));
  EXPECT_EQ(config.sources[0].dataset.options.at("patience"), Value(0.25));
  EXPECT_EQ(config.loggers[0].options.at("every"), Value(3));
  EXPECT_EQ(config.loggers[1].options.at("every"), Value(1));
}

TEST(Resolve, DatasetNamesDoNotDependOnCase) {
  EXPECT_EQ(resolve_arguments({"--training.dataset", "JSONL"}).config.training.dataset, "jsonl");
}

TEST(Resolve, SectionOfAComponentThatIsNotUsedWarns) {
  const auto warnings =
      messages(diagnostics_of(kBase + "[logger.tensorboard]\nevery = 3\n"), Severity::warning);
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                "[logger.tensorboard] has no effect: this job does not use logger 'tensorboard'"});
}

TEST(Resolve, UntouchedDatasetSaysWhichThereAre) {
  const std::string report = errors_of("");
  EXPECT_NE(report.find("cannot find dataset 'c4_test', the default of training.dataset"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("there are: jsonl"), std::string::npos) << report;
}

TEST(Resolve, UnusablePluginIsReportedWithItsOwnWords) {
  try {
    resolve_text(kBase + "[optimizer]\nname = \"acme/old\"\nwhatever = 1\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    EXPECT_NE(std::string(error.what()).find("it was built for torch 2.10.0"), std::string::npos);
    EXPECT_EQ(error.diagnostics().count(Severity::error), 1) << "its options cannot be checked";
  }
}

TEST(Resolve, FlavorThatDoesNotFitIsThePluginsFault) {
  EXPECT_NE(
      errors_of(kBase + "flavor = \"misfit\"\n")
          .find(
              "flavor 'misfit' does not fit model 'llama3': its option 'dim' must be >= 1, got 0"),
      std::string::npos);
}

TEST(Resolve, LayoutIsWorkedOut) {
  FakeLookup lookup;
  Diagnostics diagnostics;
  const auto config =
      try_resolve(read_sources("train.toml", kBase + "[parallelism]\ntensor_parallel_degree = 2\n",
                               {"--training.global_batch_size=32"}),
                  lookup, {.world_size = 8}, diagnostics);
  ASSERT_TRUE(config) << diagnostics.report();
  EXPECT_EQ(config->layout.shard, 4);
  EXPECT_EQ(config->layout.data_parallel, 4);
  EXPECT_EQ(config->layout.global_batch_size, 32);
  EXPECT_EQ(config->layout.accumulation_rounds, 4);
  EXPECT_EQ(config->parallelism.data_parallel_shard_degree, -1) << "as written";
}

TEST(Resolve, DefaultsThatCannotBeHonouredAreReplacedAndSaid) {
  const Resolution resolution = resolve_text(kBase);
  EXPECT_EQ(resolution.config.training.mixed_precision_param, Dtype::float32);
  ASSERT_EQ(resolution.messages.size(), 1u);
  EXPECT_EQ(resolution.messages[0].severity, Severity::note);
  EXPECT_TRUE(resolve_arguments({"--training.mixed_precision_param=float32"}).messages.empty());
}

TEST(Resolve, RecomputationIsChosenByName) {
  const auto chosen = [](const JobConfig& config) {
    std::vector<std::string> names;
    for (const Selection& selection : config.transforms)
      if (selection.kind == "activation_checkpoint") names.push_back(selection.name);
    return names;
  };
  EXPECT_EQ(chosen(resolve_text(kBase).config), std::vector<std::string>{"selective"});
  EXPECT_EQ(chosen(resolve_arguments({"--activation_checkpoint.mode=full"}).config),
            std::vector<std::string>{"full"});
  EXPECT_TRUE(chosen(resolve_arguments({"--activation_checkpoint.mode=none"}).config).empty());
  EXPECT_NE(errors_of(kBase + "[activation_checkpoint]\nmode = \"slective\"\n")
                .find("unknown activation_checkpoint 'slective'"),
            std::string::npos);
}

TEST(Resolve, KeysOfAnUnchosenPluginAreCheckedAndHaveNoEffect) {
  const std::string full = kBase + "[activation_checkpoint]\nmode = \"full\"\n";
  const Diagnostics fine =
      diagnostics_of(full +
                     "selective_ac_option = \"op\"\nmemory_budget = 0.3\n[quantize.linear.mx]\n"
                     "filter_fqns = [\"output\"]\n[mx]\nrecipe_name = \"mxfp8_emulated\"\n");
  EXPECT_TRUE(messages(fine, Severity::error).empty());
  EXPECT_EQ(messages(fine, Severity::warning),  // only about the old name
            std::vector<std::string>{"'mx.recipe_name' is an old name; use "
                                     "quantize.linear.mx.recipe_name = \"mxfp8_emulated\""});
  EXPECT_EQ(resolve_text(full + "selective_ac_option = \"op\"\n")
                .config.resolved.at("activation_checkpoint")
                .find("selective_ac_option"),
            nullptr);

  EXPECT_NE(errors_of(full + "memory_budget = 1.5\n").find("'memory_budget' of "),
            std::string::npos);
  EXPECT_NE(errors_of(full + "selectiv_ac_option = \"op\"\n").find("unknown option"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[quantize.linear.float8]\nrecipe_nam = \"rowwise\"\n")
                .find("did you mean 'recipe_name'"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[quantize.linear.float8]\nrecipe_name = \"row\"\n")
                .find("option 'recipe_name' of converter 'quantize.linear.float8' must be"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[quantize.linear.float]\n").find("[quantize.linear.float8]"),
            std::string::npos);
  EXPECT_EQ(errors_of(kBase, {"--activation_checkpoint.no_early_stop", "--set",
                              "quantize.linear.float8.emulate=false"}),
            "");
}

TEST(Resolve, ASwitchOfAnUnchosenPluginIsSaidToHaveNoEffect) {
  EXPECT_EQ(messages(diagnostics_of(kBase, {"--activation_checkpoint.mode=none",
                                            "--activation_checkpoint.early_stop"}),
                     Severity::warning),
            std::vector<std::string>{"activation_checkpoint.early_stop = true has no effect: this "
                                     "job does not use activation_checkpoint 'selective'"});
}

TEST(Resolve, ASectionOfTorchtitanHoldsTheOptionsOfItsPlugin) {
  const JobConfig config = resolve_text(kBase + "[quantize.linear.float8]\nemulate = true\n",
                                        {"--model.converters", "quantize.linear.float8"})
                               .config;
  ASSERT_EQ(config.transforms.at(0).name, "quantize.linear.float8");
  EXPECT_EQ(config.transforms[0].options.at("emulate"), Value(true));
  const Value& section = config.resolved.at("quantize").at("linear").at("float8");
  EXPECT_EQ(section.at("emulate"), Value(true));
}

TEST(Resolve, ACompileBackendIsChosenWhereCompileIsOn) {
  const auto chosen = [](const std::vector<std::string>& arguments) {
    for (const Selection& selection : resolve_arguments(arguments).config.transforms)
      if (selection.kind == "compile_backend")
        return selection.name + " " + to_json(selection.options);
    return std::string();
  };
  EXPECT_EQ(chosen({}), "");
  EXPECT_EQ(chosen({"--compile.backend=acme/captured"}), "");
  EXPECT_EQ(chosen({"--compile.enable"}), "fused {\"components\":[\"model\",\"loss\"]}");
  EXPECT_EQ(chosen({"--compile.enable", "--compile.backend=inductor", "--compile.components=loss"}),
            "fused {\"components\":[\"loss\"]}");
  EXPECT_EQ(chosen({"--compile.enable", "--compile.backend=acme/captured",
                    "--compile_backend.acme/captured.components=model"}),
            "acme/captured {\"components\":[\"model\"]}");
}

TEST(Resolve, ACompileBackendThatIsNotThereIsRefused) {
  EXPECT_NE(errors_of(kBase + "[compile]\nenable = true\nbackend = \"fusd\"\n")
                .find("unknown compile_backend 'fusd'"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[compile]\nenable = true\nbackend = \"aot_eager\"\n")
                .find("as without [compile]"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[compile]\nenable = true\ncomponents = [\"optimizer\"]\n")
                .find("compile.components"),
            std::string::npos);
}

const std::string kGroups =
    "[optimizer.groups.norms]\npatterns = [\"*norm*\"]\nweight_decay = 0\n"
    "[optimizer.groups.heads]\npatterns = [\"output.*\"]\nlr = 1e-5\n";

TEST(Resolve, GroupsOfParametersHaveTheOptimizersOptionsButForTheirOwn) {
  const JobConfig config = resolve_text(kBase + "[optimizer]\nlr = 0.25\n" + kGroups).config;
  EXPECT_EQ(config.optimizer.options.at("lr"), Value(0.25));
  ASSERT_EQ(config.optimizer_groups.size(), 2u);
  const OptimizerGroup &norms = config.optimizer_groups[0], &heads = config.optimizer_groups[1];
  EXPECT_EQ(norms.name, "norms");
  EXPECT_EQ(norms.patterns, std::vector<std::string>{"*norm*"});
  EXPECT_EQ(norms.optimizer.options.at("lr"), Value(0.25));
  EXPECT_EQ(norms.optimizer.options.at("weight_decay"), Value(0.0));
  EXPECT_EQ(heads.optimizer.options.at("lr"), Value(1e-5));
  EXPECT_EQ(heads.optimizer.options.at("weight_decay"),
            config.optimizer.options.at("weight_decay"));
}

TEST(Resolve, GroupsOfParametersComeBackFromTheResolvedConfiguration) {
  const JobConfig config = resolve_text(kBase + kGroups).config;
  const JobConfig again = resolve_text(to_toml(config.resolved)).config;
  EXPECT_EQ(to_json(again.resolved), to_json(config.resolved));
  EXPECT_EQ(again.optimizer_groups.size(), 2u);
}

TEST(Resolve, GroupsOfParametersNeedPatternsAndKnownOptions) {
  EXPECT_NE(errors_of(kBase + "[optimizer.groups.norms]\nweight_decay = 0\n")
                .find("[optimizer.groups.norms] needs patterns"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[optimizer.groups.norms]\npatterns = [\"a\"]\nwight_decay = 0\n")
                .find("wight_decay"),
            std::string::npos);
}

class RoundTrip : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(RoundTrip, ResolvedTextResolvesToItself) {
  const std::string first = to_toml(resolve_arguments(GetParam()).config.resolved);
  const Resolution again = resolve_text(first);
  EXPECT_EQ(to_toml(again.config.resolved), first);
  for (const Diagnostic& message : again.messages)
    EXPECT_NE(message.severity, Severity::note) << message.message;
  EXPECT_EQ(to_json(again.config.resolved), to_json(resolve_arguments(GetParam()).config.resolved));
}
INSTANTIATE_TEST_SUITE_P(
    Jobs, RoundTrip,
    ::testing::Values(
        std::vector<std::string>{},
        std::vector<std::string>{"--model.flavor=8B", "--model.n_kv_heads=None"},
        std::vector<std::string>{"--parallelism.context_parallel_load_balancer=None",
                                 "--debug.seed=1"},
        std::vector<std::string>{"--set", "job.description=\"a \\\"b\\\" \\\\ \\n \\u0001 ü\""},
        std::vector<std::string>{"--training.batch_size=4", "--training.warmup_steps=3",
                                 "--optimizer.no_fused"},
        std::vector<std::string>{"--optimizer.name=SGD", "--optimizer.lr=1",
                                 "--metrics.enable_tensorboard"},
        std::vector<std::string>{"--training.dataset=acme/web.text",
                                 "--dataset.acme/web.text.split=None",
                                 "--dataset.acme/web.text.buffer=3KiB"},
        std::vector<std::string>{"--parallelism.module_fqns_per_model_part", "a,b", "c",
                                 "--optimizer.eps=1e-300"},
        std::vector<std::string>{"--metrics.peak_flops=989.5e12", "--plugins.paths=a,b c"}));

TEST(Resolved, NamesNoInputFileAndLeavesUnsetOptionsOut) {
  const JobConfig config = resolve_text(kBase).config;
  EXPECT_EQ(config.job.config_file, "train.toml");
  EXPECT_EQ(config.resolved.at("job").find("config_file"), nullptr);
  EXPECT_EQ(config.resolved.at("debug").find("seed"), nullptr);
  EXPECT_EQ(to_json(config.resolved.at("tokenizer")),
            R"({"name":"huggingface","file":"tokenizer.json"})");
}

TEST(TomlWriter, QuotesWhatNeedsIt) {
  const Value value =
      Value::map({{"a b", Value::map({{"k", "x\"\\\n\t\x7f"}})},
                  {"s", Value::map({{"list", Value::list({1, 2.0, true, Value::list({"a"})})},
                                    {"none", Value()}})}});
  EXPECT_EQ(to_toml(value),
            "[\"a b\"]\nk = \"x\\\"\\\\\\n\\t\\u007f\"\n\n[s]\nlist = [1, 2.0, true, "
            "[\"a\"]]\nnone = \"None\"\n");
}

TEST(TomlWriter, WritesWhatIsNotSeenAsEscapesThatMeanTheSame) {
  const std::string hostile = "a\x1b\r\u009b\u202e\u200b\ufeff\U000e0041ü你👩‍🚀\\x41";
  const std::string toml = to_toml(Value::map({{"s", Value::map({{hostile, hostile}})}}));
  EXPECT_EQ(toml, printable_lines(toml)) << "nothing is left to escape";
  EXPECT_NE(toml.find("ü你👩‍🚀"), std::string::npos) << "visible characters stay";
  Diagnostics diagnostics;
  const SettingList list = parse_toml("again.toml", toml, diagnostics).value();
  ASSERT_TRUE(diagnostics.can_start()) << diagnostics.report();
  EXPECT_EQ(list.settings.at(0).path, (KeyPath{"s", hostile}));
  EXPECT_EQ(list.settings.at(0).value, Value(hostile));
  EXPECT_EQ(to_toml(Value::map({{"k", "\xff"}})), "k = \"\\uFFFD\"\n");
}

TEST(FlagHelp, ListsTheFlagsOfTheChosenComponents) {
  FakeLookup lookup;
  const auto flags = list_flags(read_sources({"--optimizer.name", "SGD"}), lookup);
  const auto find = [&](const std::string& name) {
    for (const FlagHelp& flag : flags)
      if (flag.flag == name) return flag;
    return FlagHelp{};
  };
  EXPECT_EQ(find("--training.steps").allowed, "integer >= 1");
  EXPECT_EQ(find("--training.steps").default_value, "10000");
  EXPECT_EQ(find("--optimizer.nesterov").negative_flag, "--optimizer.no_nesterov");
  EXPECT_EQ(find("--optimizer.nesterov").component, "optimizer 'SGD'");
  EXPECT_EQ(find("--debug.seed").default_value, "unset");
  EXPECT_EQ(find("--model.dim").section, "model");
  EXPECT_EQ(find("--training.batch_size").flag, "") << "old names are not advertised";
}

TEST(ReadSources, KnowThePluginFoldersBeforeAnyPlugin) {
  EXPECT_EQ(read_sources("a.toml", "plugins.paths = [\"x\"]\n", {}).plugin_paths,
            std::vector<std::string>{"x"});
  EXPECT_EQ(
      read_sources("a.toml", "plugins.paths = [\"x\"]\n", {"--plugins.paths=y,z"}).plugin_paths,
      (std::vector<std::string>{"y", "z"}));
}

TEST(ReadSources, MissingFileStopsEarly) {
  try {
    read_sources({"--job.config_file", "/nowhere.toml", "--bogus.flag"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with("error: cannot read the configuration /nowhere.toml: no such file"));
  }
}

}  // namespace
}  // namespace titan::core
