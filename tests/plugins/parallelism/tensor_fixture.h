// A small model on one rank and sharded over several, compared step by step. Used by the tests of
// the tensor plugin.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/model.h>
#include <titan/transform.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"
#include "tests/sdk/nn/slices.h"

namespace titan::tensor_test {

using testing::create;
using testing::make_cpu;
using testing::relative_error;
using testing::run_ranks;
using testing::slice_of;

/// Options of [parallelism] and the number of ranks.
struct TensorCase {
  int64_t tp = 2;
  bool sequence = true, loss = true, async = false;

  std::string text() const;
};

/// Both degrees and all options.
std::vector<TensorCase> all_tensor_cases();

using MakeLayers = std::function<std::vector<Layer>()>;

/// Sizes that 2 and 4 do not divide: feed-forward 171, vocabulary 131.
MakeLayers small_llama(bool is_tied, int64_t num_kv_heads = 4, int64_t vocab_size = 131);

void apply_tensor(ModelPart& part, const TensorCase& c, const dist::Mesh& mesh, Device& device);

inline constexpr int64_t kRows = 3, kRowLength = 16;

/// Tokens of microbatch `number`; every fifth label is ignored.
Batch small_batch(int64_t number, int64_t vocab_size = 131);

/// A rank's part of one parameter, before and after two microbatches.
struct Held {
  nn::Slice slice;
  at::Tensor weight, gradient;
  bool is_cut = false;
};
struct StepResult {
  std::vector<double> losses;
  std::map<std::string, Held> parameters;
};

/// Initial weights, and the gradients of two microbatches added up.
StepResult run_step(ModelPart& part, at::ScalarType dtype = at::kDouble);

StepResult run_alone(const MakeLayers& layers);

/// By rank.
std::vector<StepResult> run_cut(const MakeLayers& layers, const TensorCase& c,
                                at::ScalarType dtype = at::kDouble);

inline constexpr double kTolerance = 1e-12;

/// Weights must be bitwise slices of one rank's. Losses and gradients must agree. Parameters that
/// are not sharded must have bitwise equal gradients on all ranks.
void expect_equal_steps(const std::vector<StepResult>& ranks, const StepResult& alone);

}  // namespace titan::tensor_test
