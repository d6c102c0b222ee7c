// Names, text and files of the prometheus logger; tests/referee/prometheus_referee.py reads them
// with Prometheus' own parsers.
#include "plugins/loggers/prometheus/prometheus_logger.h"

#include <limits>

#include <gtest/gtest.h>

#include <titan/error.h>

#include "plugins/loggers/prometheus/metric_name.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

namespace fs = std::filesystem;

TEST(MetricName, HasTheBaseUnitAtItsEnd) {
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"loss_metrics/global_avg_loss", "titan_loss_metrics_global_avg_loss", 1},
      {"grad_norm", "titan_grad_norm", 1},
      {"memory/max_active(GiB)", "titan_memory_max_active_bytes", 1073741824},
      {"memory/max_active(%)", "titan_memory_max_active_ratio", 0.01},
      {"comm_metrics/sent_per_step(MiB)", "titan_comm_metrics_sent_per_step_bytes", 1048576},
      {"time_metrics/end_to_end(s)", "titan_time_metrics_end_to_end_seconds", 1},
      {"throughput(tps)", "titan_throughput_tokens_per_second", 1},
      {"mfu(%)", "titan_mfu_ratio", 0.01},
      {"tflops", "titan_floating_point_operations_per_second", 1e12},
      {"lr", "titan_learning_rate", 1},
      {"acme/a b-c", "titan_acme_a_b_c", 1},
      {"Größe", "titan_Gr_e", 1},
      {"acme/count", "titan_acme_count_value", 1}};
  for (const auto& [tag, name, factor] : kCases) {
    const Metric metric = metric_of(tag);
    EXPECT_EQ(metric.name, name);
    EXPECT_DOUBLE_EQ(metric.factor, factor) << tag;
    EXPECT_FALSE(metric.is_counter) << tag;
  }
  EXPECT_EQ(metric_of("n_tokens_seen").name, "titan_tokens_seen_total");
  EXPECT_TRUE(metric_of("n_tokens_seen").is_counter);
}

TEST(MetricFile, WritesHelpAndTypeOncePerMetric) {
  MetricFile file;
  file.set("b_total", MetricFile::Type::counter, "Of \\ two\nlines.", {}, 3);
  file.set("a", MetricFile::Type::gauge, "A.", {{"run", "x\"\\\n"}}, 0.1);
  file.set("a", MetricFile::Type::gauge, "Another text.", {{"run", "y"}},
           std::numeric_limits<double>::quiet_NaN());
  file.set("b_total", MetricFile::Type::counter, "B.", {}, 4);
  EXPECT_EQ(file.text(),
            "# HELP a A.\n# TYPE a gauge\n"
            "a{run=\"x\\\"\\\\\\n\"} 0.1\na{run=\"y\"} NaN\n"
            "# HELP b_total Of \\\\ two\\nlines.\n# TYPE b_total counter\nb_total 4\n");
  EXPECT_EQ(metric_value(-std::numeric_limits<double>::infinity()), "-Inf");
  EXPECT_EQ(metric_value(std::numeric_limits<double>::infinity()), "+Inf");
}

RunInfo prometheus_run_in(const TestFolder& folder) {
  RunInfo run;
  run.dump_folder = folder.path() / "outputs";
  fs::create_directories(run.dump_folder);
  run.description = "a \"run\"";
  run.start_time = 1767225600;
  run.num_steps = 10;
  return run;
}

TEST(PrometheusLogger, KeepsTheLatestNumbersInOneFile) {
  TestFolder folder;
  PrometheusLogger logger({}, {});
  logger.start(prometheus_run_in(folder));
  const auto text = [&] { return folder.read("outputs/titan.prom"); };
  EXPECT_TRUE(holds(text(), "titan_running{run=\"outputs\",rank=\"0\"} 1\n"));
  EXPECT_TRUE(holds(text(), "description=\"a \\\"run\\\"\""));
  const Scalar first[] = {{"lr", 0.5}, {"memory/max_active(GiB)", 2}, {"a/b", 1}, {"a b", 2}};
  logger.log(1, first);
  const Scalar validation{"validation_metrics/loss", 3};
  logger.log(1, {&validation, 1});
  EXPECT_TRUE(holds(text(), "titan_learning_rate{run=\"outputs\",rank=\"0\"} 0.5\n"));
  EXPECT_TRUE(
      holds(text(), "titan_memory_max_active_bytes{run=\"outputs\",rank=\"0\"} 2147483648"));
  EXPECT_TRUE(holds(text(), "titan_validation_metrics_loss{run=\"outputs\",rank=\"0\"} 3\n"));
  EXPECT_TRUE(holds(text(),
                    "titan_a_b{run=\"outputs\",rank=\"0\",tag=\"a b\"} 2\n"
                    "titan_a_b{run=\"outputs\",rank=\"0\"} 1\n"))
      << "two tags with one name are two samples";
  logger.log(2, {first, 1});
  EXPECT_TRUE(holds(text(), "titan_step{run=\"outputs\",rank=\"0\"} 2\n"));
  logger.finish(RunOutcome::stopped);
  EXPECT_TRUE(holds(text(), "titan_running{run=\"outputs\",rank=\"0\"} 0\n"));
  EXPECT_TRUE(holds(text(), "outcome=\"stopped\"} 1\n"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "outputs"), {}), 1)
      << "no temporary file is left";
}

TEST(PrometheusLogger, WritesWhereItIsTold) {
  TestFolder folder;
  RunInfo run = prometheus_run_in(folder);
  PrometheusLogger({.file = folder.path() / "run.prom"}, {}).start(run);
  EXPECT_TRUE(fs::exists(folder.path() / "run.prom"));
  run.rank = 3;
  run.config = Value::map({{"metrics", Value::map({{"save_for_all_ranks", true}})}});
  PrometheusLogger({.file = folder.path() / "run.prom"}, {}).start(run);
  EXPECT_TRUE(holds(folder.read("run_rank_3.prom"), "rank=\"3\""));
}

TEST(PrometheusLogger, TellsAFileThatCannotBeWritten) {
  TestFolder folder;
  const RunInfo run = prometheus_run_in(folder);
  const auto tell = [&](const fs::path& file) {
    PrometheusLogger logger({.file = file}, {});
    return error_of([&] { logger.start(run); });
  };
  EXPECT_TRUE(holds(tell(folder.path() / "missing/run.prom").what(), "No such file or directory"));
  fs::create_directories(folder.path() / "run.prom/full");
  const Error error = tell(folder.path() / "run.prom");
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), folder.at("run.prom") + "': Is a directory"));
}

}  // namespace
}  // namespace titan::loggers
