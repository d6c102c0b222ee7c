// Each mistake of a configuration is reported at its own place, even next to an unknown component,
// in lists and in unused sections.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "core/config/selection/component_error.h"
#include "core/config/sources/key_places.h"

namespace titan::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "8:6 option 'lr' must be ..." for each error.
std::vector<std::string> placed(const Diagnostics& diagnostics) {
  std::vector<std::string> found;
  for (const Diagnostic& d : diagnostics.sorted())
    if (d.severity == Severity::error)
      found.push_back(std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " +
                      d.message);
  return found;
}
std::vector<std::string> placed(const std::string& toml, std::vector<std::string> arguments = {}) {
  return placed(diagnostics_of(kBase + toml, std::move(arguments)));
}

TEST(HiddenMistakes, AreFoundBesideANameThatNobodyProvides) {
  for (const char* name : {"\"\"", "\"AdamX\"", "\"nonsense\"", "3"})
    EXPECT_THAT(placed("[optimizer]\nname = " + std::string(name) +
                       "\nlr = \"fast\"\nweight_decoy = 0.1\nmomentum = 0.9\nnesterov = true\n"
                       "early_step_in_backward = 3\n"),
                ElementsAre(::testing::StartsWith("8:8 "),
                            HasSubstr("9:6 option 'lr' of every optimizer must be a number > 0"),
                            "10:1 unknown option 'weight_decoy': no optimizer has it",
                            HasSubstr("13:26 optimizer.early_step_in_backward must be")))
        << name;
}

TEST(HiddenMistakes, OfAGroupAreNotThoseOfItsOptimizersSection) {
  EXPECT_THAT(
      placed("[optimizer]\nname = \"\"\n[optimizer.groups.a]\npatterns = [\"x\"]\n"
             "weight_decay = 0\nlr = -1\n"),
      ElementsAre("8:8 unknown optimizer ''", HasSubstr("12:6 option 'lr' of every optimizer")));
}

TEST(HiddenMistakes, OfAGroupAreFoundBesideAnOptimizerThatIsNotThere) {
  EXPECT_THAT(placed("[optimizer]\nname = \"\"\n[optimizer.groups.a]\npatterns = []\n"),
              ElementsAre("8:8 unknown optimizer ''", "10:12 [optimizer.groups.a] needs patterns"));
}

TEST(HiddenMistakes, AreFoundInFlagsBesideANameThatNobodyProvides) {
  EXPECT_THAT(
      placed("[optimizer]\nname = \"AdamX\"\n",
             {"--optimizer.lr", "-1", "--optimizer.nesterov", "--optimizer.beta3=1"}),
      ElementsAre("8:8 unknown optimizer 'AdamX'", HasSubstr("unknown option '--optimizer.beta3'"),
                  HasSubstr("option 'lr' of every optimizer must be > 0, got -1")));
}

TEST(HiddenMistakes, OfAPluginOfSomebodyElseCannotBeJudged) {
  EXPECT_THAT(placed("[optimizer]\nname = \"acme/muon\"\nmomentun = -1\n"),
              ElementsAre("8:8 unknown optimizer 'acme/muon'"));
}

TEST(HiddenMistakes, AreFoundBesideAModelThatNobodyProvides) {
  EXPECT_THAT(
      placed("name = \"lama3\"\nflavor = \"debugmodl\"\ndim = 0\n"),
      ElementsAre("7:8 unknown model 'lama3'", "8:10 unknown flavor 'debugmodl': no model has it",
                  "9:7 option 'dim' of every model must be >= 1, got 0"));
}

TEST(HiddenMistakes, AreFoundInSectionsThatAreNotUsed) {
  EXPECT_THAT(placed("[logger.tensorboard]\nevery = 0\nevry = 1\n"),
              ElementsAre("8:9 option 'every' of logger 'tensorboard' must be >= 1, got 0",
                          "9:1 unknown option 'evry' for logger 'tensorboard'"));
}

TEST(HiddenMistakes, OfAListAreAllReportedWithTheirOwnPlaces) {
  EXPECT_THAT(
      placed("converters = [\"acme/a\",\n  \"acme/b\"]\n[metrics]\nloggers = [\n"
             "  \"consol\",\n  \"jsonx\",\n  \"console\", \"console\"\n]\n"
             "[parallelism]\nfurther = [\"x\", \"y\"]\n"
             "[checkpoint]\nexclude_from_loading = [\"optimizers\", \"optimizer\", \"foo\"]\n"),
      ElementsAre("7:15 unknown converter 'acme/a'", "8:3 unknown converter 'acme/b'",
                  "11:3 unknown logger 'consol'", "12:3 unknown logger 'jsonx'",
                  "13:14 logger 'console' is named twice", "16:12 unknown parallelism 'x'",
                  "16:17 unknown parallelism 'y'",
                  HasSubstr("18:25 checkpoint.exclude_from_loading has an item"),
                  HasSubstr("18:52 checkpoint.exclude_from_loading has an item")));
}

TEST(HiddenMistakes, OfAListWithItemsOfAnotherTypeAreFound) {
  EXPECT_THAT(placed("[metrics]\nloggers = [\"consol\", 3]\n"),
              ElementsAre("8:12 unknown logger 'consol'",
                          HasSubstr("8:22 metrics.loggers has an item that must be a string")));
}

TEST(ConfigFile, OfNoNameIsSaidWithItsFlag) {
  try {
    read_sources({"--job.config_file", ""});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("command line: error: --job.config_file needs the name of a file, got ''"));
  }
}

TEST(ConfigFile, StartFolderMustBeThereWhereTheJobRuns) {
  const std::string toml =
      "[checkpoint]\nenable = true\ninitial_load_path = \"/nowhere\"\n[job]\ndump_folder = "
      "\"/no\"\n";
  EXPECT_THAT(placed(toml),
              ElementsAre("9:21 checkpoint.initial_load_path: there is no folder '/nowhere'"));
  FakeLookup lookup;
  Diagnostics elsewhere;
  resolve_partly(read_sources("train.toml", kBase + toml, {}), lookup, {.looks_for_files = false},
                 elsewhere);
  EXPECT_EQ(elsewhere.count(Severity::error), 0);
}

/// The message of a component about the job of `toml`, with the place in the file.
std::string mistake(const std::string& toml, const std::string& message,
                    const Selection& (*of)(const JobConfig&)) {
  const JobConfig config = resolve_text(kBase + toml).config;
  Diagnostics found;
  add_mistakes(ComponentError(Error(ErrorKind::config, message), of(config)), config, found);
  return placed(found).empty() ? "" : placed(found).front();
}
const Selection& optimizer(const JobConfig& config) {
  return config.optimizer;
}
const Selection& dataset(const JobConfig& config) {
  return config.sources[0].dataset;
}

TEST(ComponentMistakes, StandAtTheKeyThatTheyName) {
  const std::string toml = "[optimizer]\nname = \"SGD\"\nmomentum = 0\nnesterov = true\n";
  EXPECT_EQ(mistake(toml, "optimizer.nesterov needs optimizer.momentum > 0", optimizer),
            "10:12 optimizer.nesterov needs optimizer.momentum > 0");
  EXPECT_EQ(mistake(toml, "option 'momentum' of optimizer 'SGD' is 0", optimizer),
            "9:12 option 'momentum' of optimizer 'SGD' is 0");
  EXPECT_EQ(mistake(toml, "nothing is named", optimizer), "8:8 nothing is named");
  EXPECT_EQ(mistake("[optimizer]\nlr = 1\n", "nothing is named", optimizer),
            "7:2 nothing is named");
  EXPECT_EQ(mistake("[dataset.jsonl]\nweights = [\n  1,\n  2]\nfield = \"x\"\n",
                    "option 'field' must not be 'x'", dataset),
            "11:9 option 'field' must not be 'x'");
}

TEST(ComponentMistakes, NameAKeyThatWasWrittenBeforeOneThatWasNot) {
  EXPECT_EQ(mistake("n_layers = 3\n[optimizer]\nlr = 1\n",
                    "model.dim = 256 does not go with model.n_layers = 3", optimizer),
            "7:12 model.dim = 256 does not go with model.n_layers = 3");
}

TEST(ComponentMistakes, StandAtTheItemThatTheyQuote) {
  EXPECT_EQ(mistake("[optimizer.groups.a]\npatterns = [\n  \"*norm*\",\n  \"*nrm*\"]\n",
                    "optimizer.groups.a.patterns: 'nrm' or '*nrm*' fits nothing", optimizer),
            "10:3 optimizer.groups.a.patterns: 'nrm' or '*nrm*' fits nothing");
}

TEST(ComponentMistakes, StandAtEveryItemThatTheyQuoteButInAdvice) {
  const JobConfig config =
      resolve_text(kBase + "[optimizer.groups.a]\npatterns = [\"x\", \"y\",\n \"z\"]\n").config;
  Diagnostics found;
  add_mistakes(Error(ErrorKind::config,
                     "optimizer.groups.a.patterns: nothing is named 'x', 'z'; there is 'y'"),
               config, found);
  EXPECT_THAT(placed(found), ElementsAre(HasSubstr("8:13 "), HasSubstr("9:2 ")));
}

TEST(HiddenMistakes, AreFoundBesideADate) {
  EXPECT_THAT(
      placed("[training.dataloader]\nnum_workers = 1979-05-27\n[job]\ndescription = "
             "1979-05-27\n[debug]\nseed = -1\n"),
      ElementsAre("8:15 no option takes a date or a time", "10:15 no option takes a date or a time",
                  "12:8 debug.seed must be >= 0, got -1"));
}

TEST(ComponentMistakes, ThatFollowFromAnUnsoundKeyAreNotReported) {
  FakeLookup lookup;
  Diagnostics diagnostics;
  const JobConfig config =
      resolve_partly(read_sources("a.toml", "[model]\ndim = \"x\"\n", {}), lookup, {}, diagnostics);
  Diagnostics found;
  add_mistakes(Error(ErrorKind::config, "model.dim = 256 is odd"), config, found);
  EXPECT_EQ(found.count(Severity::error), 0);
  EXPECT_TRUE(config.places->has_unsound("model"));
  EXPECT_FALSE(config.places->has_unsound("optimizer"));
}

TEST(LogLine, DoesNotSayTwiceThatItWarns) {
  const Diagnostic warning{.severity = Severity::warning, .message = "x has no effect"};
  EXPECT_EQ(render_for_log(warning), "x has no effect");
  EXPECT_EQ(render(warning), "warning: x has no effect");
}

}  // namespace
}  // namespace titan::core
