// [data.sources.<name>], the validation data set, and the tokenizer that a model folder implies.
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "core/config/flag_help.h"
#include "core/config/sources/toml_writer.h"

namespace titan::core {
namespace {

using ::testing::HasSubstr;

const std::string kModel = "[model]\nhf_assets_path = \".\"\n";
const std::string kBlend =
    kModel +
    "[data.sources.web]\ndataset = \"jsonl\"\ndataset_path = \"/data/web\"\nweight = 3\n"
    "field = \"content\"\n"
    "[data.sources.code]\ndataset = \"JSONL\"\n";

TEST(DataSources, EachHasItsDataSetPathWeightAndOptions) {
  const JobConfig config = resolve_text(kBlend).config;
  ASSERT_EQ(config.sources.size(), 2u);
  EXPECT_EQ(config.sources[0].name, "web");
  EXPECT_EQ(config.sources[0].path, "/data/web");
  EXPECT_EQ(config.sources[0].weight, 3);
  EXPECT_EQ(config.sources[0].dataset.options.at("field"), Value("content"));
  EXPECT_EQ(config.sources[1].name, "code");
  EXPECT_EQ(config.sources[1].path, "");
  EXPECT_EQ(config.sources[1].weight, 1);
  EXPECT_EQ(config.sources[1].dataset.name, "jsonl");
  EXPECT_EQ(config.sources[1].dataset.options.at("field"), Value("text")) << "not the other's";
}

TEST(DataSources, TheCommandLineChangesASource) {
  const JobConfig config =
      resolve_text(kBlend, {"--data.sources.web.weight", "0.25", "--data.sources.code.field=body"})
          .config;
  EXPECT_EQ(config.sources[0].weight, 0.25);
  EXPECT_EQ(config.sources[1].dataset.options.at("field"), Value("body"));
}

TEST(DataSources, TheResolvedConfigurationResolvesToItself) {
  const Value once = resolve_text(kBlend).config.resolved;
  EXPECT_EQ(once.at("training").find("dataset"), nullptr);
  const JobConfig again = resolve_text(to_toml(once)).config;
  EXPECT_EQ(to_toml(again.resolved), to_toml(once));
  EXPECT_EQ(again.sources[0].weight, 3);
}

TEST(DataSources, WithoutThemTheDataSetOfTrainingIsTheOnlySource) {
  const JobConfig config = resolve_text(kBase, {"--training.dataset_path=/x"}).config;
  ASSERT_EQ(config.sources.size(), 1u);
  EXPECT_EQ(config.sources[0].name, "jsonl");
  EXPECT_EQ(config.sources[0].path, "/x");
  EXPECT_EQ(config.sources[0].weight, 1);
}

TEST(DataSources, MistakesAreReportedTogetherWithTheirPlaces) {
  const std::string report =
      errors_of(kModel +
                "[training]\ndataset = \"jsonl\"\n"
                "[data.sources.web]\nweight = 0\ndataset = \"jsonl\"\nfeild = \"x\"\n"
                "[data.sources.code]\nweight = 1\n"
                "[data.sources.books]\ndataset = \"jsnl\"\n");
  EXPECT_THAT(report, HasSubstr("weight"));
  EXPECT_THAT(report, HasSubstr("must be > 0, got 0"));
  EXPECT_THAT(report, HasSubstr("unknown option 'feild' for dataset 'jsonl'"));
  EXPECT_THAT(report, HasSubstr("did you mean 'field'?"));
  EXPECT_THAT(report, HasSubstr("[data.sources.code] needs a dataset"));
  EXPECT_THAT(report, HasSubstr("unknown dataset 'jsnl'"));
  EXPECT_THAT(report, HasSubstr("training.dataset cannot be combined with [data.sources]"));
}

TEST(DataSources, OptionsOfTheDataSetAreFlagsToo) {
  FakeLookup lookup;
  bool is_there = false;
  for (const FlagHelp& flag : list_flags(read_sources("train.toml", kBlend, {}), lookup))
    is_there = is_there || flag.flag == "--data.sources.web.field";
  EXPECT_TRUE(is_there);
}

TEST(ValidationSource, IsChosenOnlyWhenValidationIsEnabled) {
  EXPECT_FALSE(resolve_text(kBase).config.validation_source);
  const JobConfig config =
      resolve_text(kBase +
                   "[validation]\nenable = true\ndataset = \"jsonl\"\ndataset_path = \"/held\"\n"
                   "[dataset.jsonl]\nfield = \"body\"\n")
          .config;
  ASSERT_TRUE(config.validation_source);
  EXPECT_EQ(config.validation_source->path, "/held");
  EXPECT_EQ(config.validation_source->dataset.options.at("field"), Value("body"));
  EXPECT_EQ(config.sources[0].dataset.options.at("field"), Value("body")) << "one section for both";
  EXPECT_THAT(errors_of(kBase + "[validation]\nenable = true\n"),
              HasSubstr("cannot find dataset 'c4_validation', the default of validation.dataset"));
}

class TokenizerChoice : public ::testing::Test {
 protected:
  TokenizerChoice()
      : folder_(std::filesystem::temp_directory_path() /
                ("titan_tokenizer_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~TokenizerChoice() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string chosen(std::vector<std::string> arguments = {}) {
    arguments.push_back("--model.hf_assets_path=" + folder_.string());
    return resolve_text(kBase, arguments).config.tokenizer_section.name;
  }
  std::filesystem::path folder_;
};

TEST_F(TokenizerChoice, FollowsWhatTheFolderHolds) {
  EXPECT_EQ(chosen(), "huggingface") << "its error names the missing part";
  const std::filesystem::path pipe = folder_ / "tokenizer.model";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(chosen(), "huggingface") << "a pipe is not waited for";
  std::filesystem::remove(pipe);
  write("tokenizer.model", "IQ== 0\nIg== 1\n");
  EXPECT_EQ(chosen(), "tiktoken");
  write("tokenizer.model", std::string("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 14));
  EXPECT_EQ(chosen(), "sentencepiece");
  write("tokenizer.json", "{}");
  EXPECT_EQ(chosen(), "huggingface");
  EXPECT_EQ(chosen({"--tokenizer.name=sentencepiece"}), "sentencepiece") << "a name is a name";
}

}  // namespace
}  // namespace titan::core
