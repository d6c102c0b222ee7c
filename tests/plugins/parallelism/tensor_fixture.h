// A small model on one rank and cut over several, step by step the same. Used by the tests of the
// tensor plugin.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <titan/model.h>
#include <titan/transform.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::tensor_test {

using testing::make_cpu;
using testing::plugin_registry;

/// Ranks are threads of one process, but gloo's flight recorder is one for the process and not made
/// for that. Read once by the library, before the first group.
inline const int kNoFlightRecorder = ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0);

/// The registry serves one thread at a time.
inline std::mutex& registry_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// As testing::run_ranks; ranks do not spread over further threads.
inline void run_ranks(const dist::MeshShape& shape,
                      const std::function<void(const dist::Mesh&)>& body) {
  testing::run_ranks(shape, [&](const dist::Mesh& mesh) {
    at::set_num_threads(1);
    body(mesh);
  });
}

/// What [parallelism] says, and over how many ranks.
struct TensorCase {
  int64_t tp = 2;
  bool sequence = true, loss = true, async = false;

  std::string text() const {
    return "tp " + std::to_string(tp) + (sequence ? ", sequence" : "") + (loss ? ", loss" : "") +
           (async ? ", async" : "");
  }
};

/// Both degrees and all options.
inline std::vector<TensorCase> all_tensor_cases() {
  std::vector<TensorCase> cases;
  for (const int64_t tp : {2, 4})
    for (const bool sequence : {true, false})
      for (const bool loss : {true, false})
        for (const bool async : {false, true}) cases.push_back({tp, sequence, loss, async});
  return cases;
}

using MakeLayers = std::function<std::vector<Layer>()>;

/// Dimensions that do not divide by 2 or 4: feed-forward 171, vocabulary 131.
inline MakeLayers small_llama(bool is_tied, int64_t num_kv_heads = 4, int64_t vocab_size = 131) {
  return [=] {
    const Value options = Value::map({{"dim", 64},
                                      {"n_layers", 2},
                                      {"n_heads", 4},
                                      {"n_kv_heads", num_kv_heads},
                                      {"multiple_of", 171},
                                      {"vocab_size", vocab_size},
                                      {"enable_weight_tying", is_tied}});
    const std::lock_guard lock(registry_mutex());
    return plugin_registry().create<Model>("llama3", options, {.seq_len = 16})->build();
  };
}

inline void apply_tensor(ModelPart& part, const TensorCase& c, const dist::Mesh& mesh,
                         Device& device) {
  const TransformContext context{mesh, device, at::kDouble};
  const Value options = Value::map(
      {{"sequence_parallel", c.sequence}, {"loss_parallel", c.loss}, {"async", c.async}});
  std::unique_ptr<Parallelism> tensor;
  {
    const std::lock_guard lock(registry_mutex());
    tensor = plugin_registry().create<Parallelism>("tensor", options, context);
  }
  tensor->apply(part, context);
}

inline constexpr int64_t kRows = 3, kSeqLen = 16;

/// Tokens of microbatch `number`; every fifth label is ignored.
inline Batch small_batch(int64_t number, int64_t vocab_size = 131) {
  Batch batch;
  const at::Tensor place = at::arange(kRows * kSeqLen).view({kRows, kSeqLen});
  batch.tokens = (place * 37 + number * 11).remainder(vocab_size);
  batch.labels = (place * 53 + number * 29 + 7).remainder(vocab_size);
  batch.labels = batch.labels.masked_fill(place.remainder(5).eq(number), Batch::kIgnoredLabel);
  return batch;
}

/// What a rank holds of one parameter, before and after two microbatches.
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
inline StepResult run_step(ModelPart& part, at::ScalarType dtype = at::kDouble) {
  part.materialize(c10::kCPU, dtype, 11);
  StepResult result;
  for (nn::Parameter* p : part.parameters())
    result.parameters[p->name()] = {.slice = p->slice(),
                                    .weight = p->shard().detach().clone(),
                                    .is_cut = !p->shardings().empty()};
  for (const int64_t number : {0, 1}) {
    const at::Tensor loss = part.forward(at::Tensor(), small_batch(number));
    loss.backward();
    result.losses.push_back(loss.item<double>());
  }
  for (nn::Parameter* p : part.parameters())
    result.parameters[p->name()].gradient = p->grad().clone();
  return result;
}

inline StepResult run_alone(const MakeLayers& layers) {
  ModelPart part(layers());
  return run_step(part);
}

/// By rank.
inline std::vector<StepResult> run_cut(const MakeLayers& layers, const TensorCase& c,
                                       at::ScalarType dtype = at::kDouble) {
  std::vector<StepResult> results(static_cast<size_t>(c.tp));
  const auto device = make_cpu();
  run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
    ModelPart part(layers());
    apply_tensor(part, c, mesh, *device);
    results[static_cast<size_t>(mesh.rank())] = run_step(part, dtype);
  });
  return results;
}

inline at::Tensor part_of(const at::Tensor& whole, const nn::Slice& slice) {
  at::Tensor part = whole;
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    part = part.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return part;
}

/// Largest difference by the largest value of the whole.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected,
                             const at::Tensor& whole) {
  return ((actual - expected).abs().max() / whole.abs().max()).item<double>();
}

inline constexpr double kTolerance = 1e-12;

/// Slices of the weights are those of one rank to the bit; losses and gradients agree; what is not
/// cut has the same gradient on all ranks to the bit.
inline void expect_equal_steps(const std::vector<StepResult>& ranks, const StepResult& alone) {
  for (const StepResult& rank : ranks) {
    ASSERT_EQ(rank.losses.size(), alone.losses.size());
    for (size_t i = 0; i < alone.losses.size(); ++i) {
      EXPECT_NEAR(rank.losses[i] / alone.losses[i], 1, kTolerance);
      EXPECT_EQ(rank.losses[i], ranks[0].losses[i]);
    }
    ASSERT_EQ(rank.parameters.size(), alone.parameters.size());
    for (const auto& [name, held] : rank.parameters) {
      const Held& whole = alone.parameters.at(name);
      EXPECT_TRUE(at::equal(held.weight, part_of(whole.weight, held.slice))) << name;
      EXPECT_LT(relative_error(held.gradient, part_of(whole.gradient, held.slice), whole.gradient),
                kTolerance)
          << name;
      if (!held.is_cut) {
        EXPECT_TRUE(at::equal(held.gradient, ranks[0].parameters.at(name).gradient)) << name;
      }
    }
  }
}

}  // namespace titan::tensor_test
