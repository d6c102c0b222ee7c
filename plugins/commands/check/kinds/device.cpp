// Tests of devices.
#include <cmath>

#include <ATen/ops/empty.h>
#include <titan/device.h>

#include "kit/constructors.h"
#include "kit/jobs.h"

namespace titan::conformance::device_kind {
namespace {

void describes(TestContext& test) {
  const auto device = make_device(test);
  test.expect(!device->description().empty(), "description() is empty");
  test.expect(device->device() == device->device(), "device() changes");
}

void memory(TestContext& test) {
  const auto device = make_device(test);
  const MemoryStats stats = device->memory();
  test.expect(stats.total > 0, "memory().total is ", stats.total);
  test.expect(stats.peak >= 0, "memory().peak is ", stats.peak);
  device->reset_peak_memory();
  test.expect(device->memory().peak >= 0, "memory().peak is below 0 after reset_peak_memory()");
}

void peak_flops(TestContext& test) {
  const auto device = make_device(test);
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble, at::kHalf}) {
    const auto peak = device->peak_flops(dtype);
    test.expect(!peak || (std::isfinite(*peak) && *peak > 0), "peak_flops() is ", peak.value_or(0));
  }
}

void computes(TestContext& test) {
  const auto device = make_device(test);
  at::Tensor values = at::empty({8}, at::kFloat).fill_(3).to(device->device());
  values.add_(4);
  device->synchronize();
  test.expect(values.to(c10::kCPU).sum().item<double>() == 56,
              "3 + 4 on the device is not 7 after synchronize()");
}

void trains(TestContext& test) {
  make_device(test);
  const JobRun own = job_with(test, "own").saves().run();
  const JobRun cpu = plain_job(test, "cpu").set("device.name", "cpu").saves().run();
  measure_runs(test, own, cpu, false);
}

void same_bits(TestContext& test) {
  make_device(test);
  Job job = job_with(test, "one").saves();
  const JobRun one = job.run();
  expect_same_bits(test, job.named("other").run(), one, "two deterministic runs");
}

void connects(TestContext& test) {
  make_device(test);
  Job job = job_with(test, "one").saves();
  const JobRun one = job.run();
  const Job two = job.named("two").ranks(2).set("parallelism.data_parallel_shard_degree", 2);
  measure_runs(test, two.run_unless_refused("2 ranks"), one, false);
}

}  // namespace
}  // namespace titan::conformance::device_kind

namespace titan::conformance {

std::vector<Test> device_tests() {
  using namespace device_kind;
  constexpr const char* kKind = "device";
  return {
      {kKind, "describes", "The description is not empty, and device() is always the same.",
       describes},
      {kKind, "memory", "The total memory is above 0 and the peak is not negative.", memory},
      {kKind, "peak_flops", "The peak of each dtype is unknown, or finite and above 0.",
       peak_flops},
      {kKind, "computes", "A sum on the device is right in host memory after synchronize().",
       computes},
      {kKind, "trains", "A float32 run on the device gives the losses of a run on the CPU.", trains,
       "", 1e-3},
      {kKind, "same_bits", "Two deterministic runs on the device are equal bit for bit.",
       same_bits},
      {kKind, "connects",
       "A float32 run of 2 ranks on the device gives the losses of one rank, or is refused before "
       "it starts, as an error of the configuration.",
       connects, "", 1e-3},
  };
}

}  // namespace titan::conformance
