#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

namespace titan::testing {

std::vector<Layer> llama_layers(bool is_tied, int64_t num_layers) {
  const Value options = Value::map({{"dim", 24},
                                    {"n_layers", num_layers},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"vocab_size", kVocab},
                                    {"multiple_of", 1},
                                    {"ffn_dim_multiplier", 1.07},
                                    {"enable_weight_tying", is_tied}});
  return create<Model>("llama3", options, {.seq_len = kSeqLen})->build();
}

Batch make_rows(int64_t begin, int64_t count) {
  const at::Tensor place =
      at::arange(begin * kSeqLen, (begin + count) * kSeqLen).reshape({count, kSeqLen});
  const at::Tensor labels = (place * 53 + 29) % kVocab;
  return {.tokens = (place * 37 + 5) % kVocab,
          .labels = labels.masked_fill(place % 11 == 3, Batch::kIgnoredLabel)};
}

Replica::Replica(std::vector<Layer> layers, const dist::Mesh& mesh, std::string_view transform,
                 const Value& options, at::ScalarType dtype, const Prepare& prepare, Device* device,
                 const Prepare& finish)
    : own_device_(device ? nullptr : make_cpu()), part_(std::move(layers)) {
  Device& used = device ? *device : *own_device_;
  if (prepare) prepare(part_);
  if (!transform.empty()) {
    const TransformContext context{.mesh = mesh, .device = used, .parameter_dtype = dtype};
    transform_ = create<Parallelism>(transform, options, context);
    transform_->apply(part_, context);
  }
  if (finish) finish(part_);
  part_.materialize(used.device(), dtype, kSeed);
}

double Replica::run_step(const std::vector<Batch>& microbatches) {
  double sum = 0;
  if (transform_) reducer().begin_step();
  for (size_t i = 0; i < microbatches.size(); ++i) {
    if (transform_) reducer().start_microbatch(i + 1 == microbatches.size());
    const at::Tensor loss = part_.forward(at::Tensor(), microbatches[i]) / 64.0;
    loss.backward();
    sum += loss.item<double>();
  }
  if (transform_) reducer().finish_gradients();
  return sum;
}

std::unique_ptr<Optimizer> Replica::make_adamw() {
  return create<Optimizer>("AdamW", Value::map({{"lr", 0.01}}), {part_.parameters()});
}

void expect_equal_slices(Replica& replica, Replica& whole, double tolerance,
                         const std::string& what) {
  const auto& actual = replica.part().parameters();
  const auto& expected = whole.part().parameters();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const nn::Parameter& p = *actual[i];
    ASSERT_EQ(p.name(), expected[i]->name());
    const at::Tensor value = expected[i]->shard().detach();
    const at::Tensor gradient = expected[i]->grad();
    ASSERT_EQ(p.shard().sizes(), at::IntArrayRef(p.slice().sizes)) << p.name();
    EXPECT_LE(relative_error(p.shard(), slice_of(value, p.slice()), value), tolerance)
        << what << ": value of " << p.name();
    ASSERT_TRUE(p.grad().defined()) << what << ": " << p.name();
    ASSERT_EQ(p.grad().sizes(), p.shard().sizes()) << what << ": " << p.name();
    ASSERT_EQ(p.grad().scalar_type(), p.shard().scalar_type()) << what << ": " << p.name();
    ASSERT_EQ(p.grad().device(), p.shard().device()) << what << ": " << p.name();
    EXPECT_LE(relative_error(p.grad(), slice_of(gradient, p.slice()), gradient), tolerance)
        << what << ": gradient of " << p.name();
  }
}

std::vector<Batch> own_microbatches(const dist::Mesh& mesh, int64_t rows_per_microbatch,
                                    int64_t num_microbatches) {
  std::vector<Batch> all;
  const int64_t begin = mesh.batch_rank() * rows_per_microbatch * num_microbatches;
  for (int64_t i = 0; i < num_microbatches; ++i)
    all.push_back(make_rows(begin + i * rows_per_microbatch, rows_per_microbatch));
  return all;
}

dist::Traffic traffic_of(const dist::Mesh& mesh, const std::string& group,
                         const std::string& operation) {
  const auto all = mesh.recorder().traffic();
  const auto found = all.find({group, operation});
  return found == all.end() ? dist::Traffic{} : found->second;
}

void open_plugins() {
  const dist::Mesh mesh;
  for (const char* transform : {"fsdp", "ddp"})
    Replica(llama_layers(false), mesh, transform, Value::map(), at::kFloat).make_adamw();
}

}  // namespace titan::testing
