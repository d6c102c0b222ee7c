// What tests of several kinds do with jobs: compare layouts, resume, and the rows for abilities of
// transforms.
#pragma once

#include <string>
#include <vector>

#include "jobs.h"

namespace titan::conformance {

/// Keys of a layout of 2 ranks in addition to those of the tested plugin.
struct Axis {
  const char* degree;  ///< "parallelism.tensor_parallel_degree"
  const char* name;    ///< "tensor parallelism"
};
inline constexpr Axis kFsdp = {"parallelism.data_parallel_shard_degree", "FSDP"};
inline constexpr Axis kTensor = {"parallelism.tensor_parallel_degree", "tensor parallelism"};
inline constexpr Axis kPipeline = {"parallelism.pipeline_parallel_degree", "a pipeline"};
inline constexpr Axis kContext = {"parallelism.context_parallel_degree", "context parallelism"};

/// `job` on twice its ranks, which the axis adds.
Job with_axis(Job job, const Axis& axis, int ranks = 1);
/// Runs `job` through, then again from the checkpoint of each of its steps but the last; Broken
/// unless all are equal bit for bit.
void expect_resumes(const TestContext& test, Job job);
/// One test per optional interface of transforms, for the kind.
std::vector<Test> transform_ability_tests(const char* kind);

}  // namespace titan::conformance
