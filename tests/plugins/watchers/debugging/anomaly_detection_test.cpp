// An operation whose backward gives a NaN is reported with the module that recorded it.
#include "plugins/watchers/debugging/anomaly_detection.h"

#include <ATen/ops/sqrt.h>
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/watchers/debugging/debug_fixture.h"

namespace titan::debugging {
namespace {

using debug_test::change_output;
using debug_test::DebuggedRun;
using debug_test::kNothing;
using titan::testing::error_of;
using titan::testing::holds;

TEST(AnomalyDetection, NamesTheOperationAndTheModuleThatRecordedIt) {
  // finite forward; in the backward 0 * inf
  DebuggedRun run(dist::Mesh(),
                  change_output("layers.0.feed_forward.w1", 0,
                                [](const at::Tensor& y) { return y + at::sqrt(y * 0) * 0; }));
  AnomalyDetection anomalies;
  anomalies.attach(run.part);
  run.connect({});
  anomalies.wrap(run.executor);
  const Error error = error_of([&] { run.step(1, {}, &anomalies); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.message(), "Function 'SqrtBackward0' returned nan values"));
  EXPECT_TRUE(holds(error.what(),
                    "operation SqrtBackward0 was recorded in the forward of "
                    "'layers.0.feed_forward.w1'"));
}

TEST(AnomalyDetection, ChangesNoLossAndNoGradient) {
  DebuggedRun looked_at(dist::Mesh(), kNothing), plain(dist::Mesh(), kNothing);
  AnomalyDetection anomalies;
  anomalies.attach(looked_at.part);
  looked_at.connect({});
  plain.connect({});
  anomalies.wrap(looked_at.executor);
  looked_at.step(1, {}, &anomalies);
  plain.step(1, {});
  EXPECT_EQ(looked_at.loss, plain.loss);
  EXPECT_EQ(looked_at.norm, plain.norm);
}

}  // namespace
}  // namespace titan::debugging
