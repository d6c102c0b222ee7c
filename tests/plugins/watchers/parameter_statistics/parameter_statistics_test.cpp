// Norms and histograms of parameters, compared with counts by hand.
#include "plugins/watchers/parameter_statistics/parameter_statistics.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "core/train/logging/logger_set.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::parameter_statistics {
namespace {

using core::LoggerSet;
using Rows = std::map<std::string, std::map<double, double>>;  // count by lower edge

class KeepingLogger final : public Logger {
 public:
  explicit KeepingLogger(Rows& rows) : rows_(rows) {}
  void start(const RunInfo&) override {}
  void log(int64_t, std::span<const Scalar>) override {}
  void log_histograms(int64_t, std::span<const Histogram> histograms) override {
    for (const Histogram& found : histograms) {
      EXPECT_EQ(found.edges.size(), found.counts.size() + 1);
      for (size_t i = 0; i < found.counts.size(); ++i)
        if (found.counts[i] > 0) rows_[std::string(found.tag)][found.edges[i]] = found.counts[i];
    }
  }
  void finish(RunOutcome) noexcept override {}

 private:
  Rows& rows_;
};

class OneParameter final : public nn::Module {
 public:
  OneParameter() { add_parameter("a", {8}, nn::Init::constant(0)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Statistics {
  explicit Statistics(const Options& asked) : options(asked) {
    std::vector<Layer> layers;
    layers.push_back({"layer", std::make_unique<OneParameter>(), "layer"});
    part = std::make_unique<ModelPart>(std::move(layers));
    part->materialize(c10::kCPU, at::kDouble, 1);
    const at::NoGradGuard no_grad;
    part->parameters()[0]->shard().copy_(
        at::tensor({0.0, 1.0, 1.5, 2.0, -1.0, -1.5, 1e-30, 1e30}, at::kDouble));
    part->parameters()[0]->shard().mutable_grad() =
        at::tensor({NAN, kInfinity, 8.0, 12.0, 0.0, 0.0, 0.0, -16.0}, at::kDouble);
    loggers.add("kept", std::make_unique<KeepingLogger>(rows));
  }
  ParameterStatistics make() { return {options, {mesh, *device, loggers, ""}}; }
  std::map<std::string, double> take(int64_t number, double gradient_scale) {
    ParameterStatistics statistics = make();
    statistics.attach(*part);
    Step step{.number = number};
    step.batches.gradient_scale = gradient_scale;
    statistics.reduced(step);
    statistics.commit(step);
    std::map<std::string, double> scalars;
    for (const Scalar& scalar : step.scalars) scalars[std::string(scalar.tag)] = scalar.value;
    loggers.flush();
    return scalars;
  }

  Options options;
  const dist::Mesh mesh;
  const std::unique_ptr<Device> device = titan::testing::make_cpu();
  std::unique_ptr<ModelPart> part;
  Rows rows;
  LoggerSet loggers;
};

TEST(ParameterStatistics, HistogramsCountEachFiniteValueWhereItLies) {
  Statistics run({.log_freq = 5, .histograms = {"layer.*"}, .histogram_freq = 10});
  EXPECT_TRUE(run.take(10, 4).empty());
  const double least = std::ldexp(1, -40), greatest = std::ldexp(1, 20);
  EXPECT_EQ(run.rows.at("weights/layer.a"),
            (std::map<double, double>{{-2, 1},  // from -2 up to -1: -1.5
                                      {-1, 1},
                                      {0, 2},  // 0 and 1e-30, less than 2^-40
                                      {1, 2},
                                      {2, 1},
                                      {greatest / 2, 1}}));  // beyond the last edge
  EXPECT_EQ(run.rows.at("gradients/layer.a"),
            (std::map<double, double>{{-4, 1}, {0, 3}, {2, 2}}))  // divided by the scale
      << least;
}

TEST(ParameterStatistics, ComeAtLoggedStepsAlone) {
  Statistics run(
      {.log_freq = 5, .norms = NormsOf::parameters, .histograms = {"*"}, .histogram_freq = 3});
  EXPECT_EQ(run.take(1, 1).size(), 2u);
  EXPECT_EQ(run.rows.size(), 2u);
  run.rows.clear();
  EXPECT_TRUE(run.take(3, 1).empty()) << "not logged";
  EXPECT_TRUE(run.rows.empty());
  EXPECT_EQ(run.take(5, 1).size(), 2u);
  EXPECT_TRUE(run.rows.empty());
}

TEST(ParameterStatistics, NormsAreOfWhatTheLossGave) {
  Statistics run({.norms = NormsOf::layers});
  const at::NoGradGuard no_grad;
  run.part->parameters()[0]->shard().fill_(3);
  run.part->parameters()[0]->shard().mutable_grad().fill_(4);
  const std::map<std::string, double> norms = run.take(1, 2);
  EXPECT_DOUBLE_EQ(norms.at("param_norm/layer"), 3 * std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(norms.at("grad_norm/layer"), 2 * std::sqrt(8.0));
}

TEST(ParameterStatistics, APatternThatFitsNothingIsRefused) {
  const auto match = [](const Options& options) {
    Statistics run(options);
    run.make().match(*run.part);
  };
  match({.histograms = {"layer.a"}});
  try {
    match({.histograms = {"*", "layers.*"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(error.message().find("metrics.histograms: 'layers.*' fits no parameter of the model; "
                                   "there is 'layer.a'"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace titan::parameter_statistics
