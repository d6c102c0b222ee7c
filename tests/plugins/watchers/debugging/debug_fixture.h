// A small model whose steps run through all stages, and layers that are made to fail. Used by the
// tests of the tools of [debug].
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <titan/dist/mesh.h>
#include <titan/error.h>

#include "core/train/optimizer/gradient_clipper.h"
#include "core/train/step/sequential_executor.h"
#include "core/train/step/step_runner.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::debug_test {

using core::GradientClipper;
using core::SequentialExecutor;
using core::StepRunner;

using Transform = std::function<void(ModelPart&)>;

/// Applies `change` to the result of the module at `path`, in microbatch `microbatch` of each run.
inline Transform change_output(const std::string& path, int64_t microbatch,
                               const std::function<at::Tensor(const at::Tensor&)>& change) {
  return [=](ModelPart& part) {
    part.visit_modules([&](const std::string& name, nn::Module& module) {
      if (name != path) return;
      module.wrap([=, calls = int64_t{0}](const at::Tensor& x, const Batch& batch,
                                          const nn::Next& next) mutable {
        const at::Tensor y = next(x, batch);
        return calls++ % 2 == microbatch ? change(y) : y;
      });
    });
  };
}

/// The same shape, all NaN.
inline at::Tensor spoilt(const at::Tensor& y) {
  return y * std::numeric_limits<double>::quiet_NaN();
}

/// The same values, but a gradient of NaN in the backward.
inline at::Tensor spoilt_backward(const at::Tensor& y) {
  const at::Tensor handed = y * 1;
  if (handed.requires_grad()) handed.register_hook([](const at::Tensor& g) { return spoilt(g); });
  return handed * 1;
}

/// Two microbatches a step, through `members` and a clipper that never clips.
struct DebuggedRun {
  DebuggedRun(const dist::Mesh& on, const Transform& transform) : mesh(on) { transform(part); }

  /// [after the tools have wrapped the part]
  void connect(std::vector<GradientReducer*> reducers) {
    part.materialize(c10::kCPU, at::kDouble, 11);
    executor.connect({part, *device, {}, std::move(reducers), mesh.recorder()});
  }
  Verdict step(int64_t number, std::vector<StepMember*> members, StepExecutor* around = nullptr) {
    GradientClipper clipper(part, mesh, c10::kCPU, 0);
    StepRunner runner(part, around ? *around : executor, {std::move(members), {}, {&clipper}},
                      mesh.group("world"), c10::kCPU);
    Step step{.number = number, .batches = batches()};
    const Verdict verdict = runner.run(step);
    loss = step.loss.normalized_sum;
    norm = step.norm.value_or(0);
    return verdict;
  }
  static StepBatches batches() {
    return {.microbatches = {tensor_test::small_batch(0), tensor_test::small_batch(1)},
            .num_valid_tokens = 70};
  }

  const dist::Mesh mesh;
  const std::unique_ptr<Device> device = titan::testing::make_cpu();
  ModelPart part{tensor_test::small_llama(/*is_tied=*/false)()};
  SequentialExecutor executor;
  double loss = 0, norm = 0;
};

inline const Transform kNothing = [](ModelPart&) {};

}  // namespace titan::debug_test
