#include "tests/plugins/parallelism/tensor_fixture.h"

#include <memory>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

namespace titan::tensor_test {

std::string TensorCase::text() const {
  return "tp " + std::to_string(tp) + (sequence ? ", sequence" : "") + (loss ? ", loss" : "") +
         (async ? ", async" : "");
}

std::vector<TensorCase> all_tensor_cases() {
  std::vector<TensorCase> cases;
  for (const int64_t tp : {2, 4})
    for (const bool sequence : {true, false})
      for (const bool loss : {true, false})
        for (const bool async : {false, true}) cases.push_back({tp, sequence, loss, async});
  return cases;
}

MakeLayers small_llama(bool is_tied, int64_t num_kv_heads, int64_t vocab_size) {
  return [=] {
    const Value options = Value::map({{"dim", 64},
                                      {"n_layers", 2},
                                      {"n_heads", 4},
                                      {"n_kv_heads", num_kv_heads},
                                      {"multiple_of", 171},
                                      {"vocab_size", vocab_size},
                                      {"enable_weight_tying", is_tied}});
    return create<Model>("llama3", options, {.seq_len = 16})->build();
  };
}

void apply_tensor(ModelPart& part, const TensorCase& c, const dist::Mesh& mesh, Device& device) {
  const TransformContext context{mesh, device, at::kDouble};
  const Value options = Value::map(
      {{"sequence_parallel", c.sequence}, {"loss_parallel", c.loss}, {"async", c.async}});
  create<Parallelism>("tensor", options, context)->apply(part, context);
}

Batch small_batch(int64_t number, int64_t vocab_size) {
  Batch batch;
  const at::Tensor place = at::arange(kRows * kRowLength).view({kRows, kRowLength});
  batch.tokens = (place * 37 + number * 11).remainder(vocab_size);
  batch.labels = (place * 53 + number * 29 + 7).remainder(vocab_size);
  batch.labels = batch.labels.masked_fill(place.remainder(5).eq(number), Batch::kIgnoredLabel);
  return batch;
}

StepResult run_step(ModelPart& part, at::ScalarType dtype) {
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

StepResult run_alone(const MakeLayers& layers) {
  ModelPart part(layers());
  return run_step(part);
}

std::vector<StepResult> run_cut(const MakeLayers& layers, const TensorCase& c,
                                at::ScalarType dtype) {
  std::vector<StepResult> results(static_cast<size_t>(c.tp));
  const auto device = make_cpu();
  run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
    ModelPart part(layers());
    apply_tensor(part, c, mesh, *device);
    results[static_cast<size_t>(mesh.rank())] = run_step(part, dtype);
  });
  return results;
}

void expect_equal_steps(const std::vector<StepResult>& ranks, const StepResult& alone) {
  for (const StepResult& rank : ranks) {
    ASSERT_EQ(rank.losses.size(), alone.losses.size());
    for (size_t i = 0; i < alone.losses.size(); ++i) {
      EXPECT_NEAR(rank.losses[i] / alone.losses[i], 1, kTolerance);
      EXPECT_EQ(rank.losses[i], ranks[0].losses[i]);
    }
    ASSERT_EQ(rank.parameters.size(), alone.parameters.size());
    for (const auto& [name, held] : rank.parameters) {
      const Held& whole = alone.parameters.at(name);
      EXPECT_TRUE(at::equal(held.weight, slice_of(whole.weight, held.slice))) << name;
      EXPECT_LT(relative_error(held.gradient, slice_of(whole.gradient, held.slice), whole.gradient),
                kTolerance)
          << name;
      if (!held.is_cut) {
        EXPECT_TRUE(at::equal(held.gradient, ranks[0].parameters.at(name).gradient)) << name;
      }
    }
  }
}

}  // namespace titan::tensor_test
