// Names, values and addresses of the mlflow logger. tests/end_to_end/mlflow_test.py sends them to a
// stand-in server, tests/referee/mlflow_check.py to MLflow's own.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "plugins/loggers/mlflow/mlflow_names.h"
#include "plugins/loggers/mlflow/mlflow_options.h"
#include "plugins/loggers/mlflow/post_process.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

/// Sets environment variables during its lifetime, and unsets all others that the logger reads.
class MlflowVariables {
 public:
  explicit MlflowVariables(
      std::initializer_list<std::pair<const char*, const char*>> variables = {}) {
    for (const char* name :
         {"MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID", "MLFLOW_RUN_ID",
          "MLFLOW_RUN_NAME", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD",
          "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_SERVER_CERT_PATH", "CURL_CA_BUNDLE",
          "SSL_CERT_FILE"}) {
      const char* value = std::getenv(name);
      old_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  ~MlflowVariables() {
    for (const auto& [name, value] : old_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> old_;
};

TEST(MlflowNames, AreThoseThatMlflowTakes) {
  EXPECT_EQ(mlflow_key("loss_metrics/global_avg_loss"), "loss_metrics/global_avg_loss");
  EXPECT_EQ(mlflow_key("throughput(tps)"), "throughput_tps");
  EXPECT_EQ(mlflow_key("mfu(%)"), "mfu_pct");
  EXPECT_EQ(mlflow_key("memory/max_active(GiB)"), "memory/max_active_GiB");
  EXPECT_EQ(mlflow_key("a,b=c"), "a_b_c");
  EXPECT_EQ(mlflow_key("/a//b/../c/"), "a/b/__/c") << "a path, and one that stays where it is";
  EXPECT_EQ(mlflow_key("/"), "_");
  EXPECT_EQ(mlflow_key(std::string(300, 'x')), std::string(250, 'x'));
}

TEST(MlflowNames, NumbersWithoutAFormInJsonAreWords) {
  EXPECT_EQ(mlflow_number(0.5), Value(0.5));
  EXPECT_EQ(mlflow_number(std::nan("")), Value("NaN"));
  EXPECT_EQ(mlflow_number(-std::numeric_limits<double>::infinity()), Value("-Infinity"));
}

TEST(MlflowNames, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(cut_text("größe", 100), "größe");
  EXPECT_EQ(cut_text("größe", 3), "gr");  // ö has two bytes in UTF-8
  EXPECT_EQ(cut_text("größe", 4), "grö");
}

TEST(MlflowNames, ParametersAreThePathsOfTheConfiguration) {
  const Value config = Value::map(
      {{"training", Value::map({{"steps", 3}, {"seed", Value()}})},
       {"dataset", Value::map({{"acme/x", Value::map({{"list", Value::list({1, "a"})}})}})},
       {"name", "text"}});
  EXPECT_EQ(mlflow_params(config),
            (MlflowParams{
                {"training.steps", "3"}, {"dataset.acme/x.list", R"([1,"a"])"}, {"name", "text"}}));
}

TEST(MlflowSettings, OptionsComeBeforeTheEnvironment) {
  const MlflowVariables variables({{"MLFLOW_TRACKING_URI", "http://other"},
                                   {"MLFLOW_EXPERIMENT_NAME", "theirs"},
                                   {"MLFLOW_RUN_ID", "abc"}});
  const MlflowSettings settings =
      mlflow_settings({.tracking_uri = "https://mine/", .experiment_name = "mine"});
  EXPECT_EQ(settings.server, "https://mine");
  EXPECT_EQ(settings.experiment_name, "mine");
  EXPECT_EQ(settings.run_id, "abc");
  EXPECT_EQ(mlflow_settings({}).server, "http://other");
}

TEST(MlflowSettings, AnAddressLosesItsPasswordBeforeItIsShown) {
  const MlflowVariables variables({{"MLFLOW_TRACKING_URI", "http://me:a@b@host:5000/path/"}});
  const MlflowSettings settings = mlflow_settings({});
  EXPECT_EQ(settings.server, "http://host:5000/path");
  EXPECT_EQ(settings.user, "me");
  EXPECT_EQ(settings.password, "a@b");
  ::setenv("MLFLOW_TRACKING_URI", "http://host/a@b", 1);
  EXPECT_EQ(mlflow_settings({}).server, "http://host/a@b");
}

TEST(MlflowSettings, WithoutAServerItSaysWhatToSet) {
  const MlflowVariables variables;
  const Error none = error_of([] { mlflow_settings({}); });
  EXPECT_EQ(none.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(none.what(), "MLFLOW_TRACKING_URI"));
  EXPECT_TRUE(holds(error_of([] { mlflow_settings({.tracking_uri = "sqlite:///x.db"}); }).what(),
                    "got 'sqlite:///x.db'"));
}

TEST(PostProcess, AProgramThatIsNotThereIsAnError) {
  TestFolder folder;
  PostProcess post(folder.path() / "titan-post");
  const Error error = error_of([&] { post.send(Value::map({{"url", "http://x"}}), 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "cannot run '" + folder.at("titan-post") + "'"));
}

TEST(PostProcess, AProgramThatEndsIsStartedAgain) {
  PostProcess post("/bin/true");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(post.send(Value::map({{"url", "http://x"}}), 1).problem,
              "titan-post has ended or does not answer");
}

TEST(PostProcess, WhatIsGivenUpSendsNothingMore) {
  PostProcess post("/bin/cat");
  post.abort();
  EXPECT_EQ(post.send(Value::map({{"url", "http://x"}}), 1).problem, "it was given up");
}

}  // namespace
}  // namespace titan::loggers
