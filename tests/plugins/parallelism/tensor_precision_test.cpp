// Replicated parameters under tensor parallelism with layers in bfloat16: their gradients are
// summed in the dtype that the job sets. Compared with ATen's fp32 sum of all ranks' gradients.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/cuts.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"
#include "tests/plugins/parallelism/expert_fixture.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::tensor_precision_test {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs
using at::Tensor;

constexpr int64_t kMicrobatches = 2, kTokens = 8;

struct Case {
  std::string name;
  dist::MeshShape shape;
  int64_t expert = 1, expert_tensor = 1;
  bool sequence = true;
  bool sums_each = false;  // fsdp option: reduce each microbatch
  int64_t num_shared = 0;  // parameters that ranks of tp replicate and use differently
};

/// The share of elements that bfloat16 cannot represent.
double share_off_grid(const Tensor& values) {
  return values.ne(values.to(at::kBFloat16).to(values.scalar_type())).sum().item<double>() /
         static_cast<double>(values.numel());
}

/// The tensors of all ranks of the group, added in fp32 in rank order.
Tensor sum_of_parts(const Tensor& own, const dist::Group& group) {
  std::vector<int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), group.size());
  const Tensor all = at::empty(sizes, own.options());
  group.all_gather(all, own).wait();
  return all.to(at::kFloat).sum(0);
}

/// One rank's run of a mixture of experts, in bfloat16 under fsdp.
class NarrowRun {
 public:
  NarrowRun(const Case& c, const dist::Mesh& mesh, at::ScalarType reduce_dtype)
      : mesh_(mesh), part_(expert_test::one_mixture({.name = "", .has_shared_and_biases = true})) {
    const TransformContext context{.mesh = mesh,
                                   .device = *device_,
                                   .compute_dtype = at::kBFloat16,
                                   .reduce_dtype = reduce_dtype};
    create<Parallelism>("tensor", Value::map({{"sequence_parallel", c.sequence}}), context)
        ->apply(part_, context);
    if (c.expert * c.expert_tensor > 1)
      expert_test::make_expert(context, c.expert, c.expert_tensor)->apply(part_, context);
    const std::string reduce = reduce_dtype == at::kFloat ? "float32" : "bfloat16";
    data_ = create<Parallelism>("fsdp",
                                Value::map({{"param_dtype", "bfloat16"},
                                            {"reduce_dtype", reduce},
                                            {"sum_each_microbatch", c.sums_each}}),
                                context);
    data_->apply(part_, context);
    part_.materialize(c10::kCPU, at::kFloat, 11);
    parts_.resize(part_.parameters().size());
    for (size_t i = 0; i < parts_.size(); ++i)  // runs before the plugins' own hooks
      part_.parameters()[i]->value().register_hook(
          [this, i](const Tensor& gradient) { parts_[i].push_back(gradient.clone()); });
  }

  void step(const Case& c) {
    auto& reducer = dynamic_cast<GradientReducer&>(*data_);
    reducer.begin_step();
    const int64_t length = kTokens / (c.sequence ? mesh_.group("tp").size() : 1);
    const int64_t first = c.sequence ? mesh_.group("tp").rank() * length : 0;
    for (int64_t i = 0; i < kMicrobatches; ++i) {
      reducer.start_microbatch(i + 1 == kMicrobatches);
      const int64_t rows = mesh_.batch_rank() * kMicrobatches + i;
      const auto own = [&](double shift) {
        return expert_test::numbers(2, kTokens, rows, shift)
            .narrow(1, first, length)
            .to(at::kBFloat16);
      };
      expert_test::pass(part_, own(0), own(0.5) - 1);
    }
    reducer.finish_gradients();
  }

  /// The expected gradient of parameter `i`: the fp32 sum over all ranks and microbatches.
  Tensor expected(size_t i) {
    const nn::Parameter& p = *part_.parameters()[i];
    Tensor sum = at::zeros(p.value().sizes());
    for (const Tensor& part : parts_[i])
      sum += sum_of_parts(part.contiguous(), mesh_.complement("tp", cuts_by_plugins(p)));
    mesh_.complement("fsdp", cuts_by_plugins(p)).all_reduce(sum, dist::Reduce::sum).wait();
    return sum;
  }

  /// Groups along which other plugins than fsdp shard the parameter.
  std::vector<std::string> cuts_by_plugins(const nn::Parameter& p) const {
    std::vector<std::string> cuts;
    for (const std::string& group : nn::cut_groups(p))
      if (group == "tp" || group == "ep") cuts.push_back(group);
    return cuts;
  }

  bool is_shared(const nn::Parameter& p, const Case& c) const {
    const bool is_summed_bias = c.expert_tensor > 1 && p.name() == "moe.experts.w2_bias";
    return (c.sequence || is_summed_bias) &&
           mesh_.complement("tp", cuts_by_plugins(p)).size() == mesh_.group("tp").size();
  }

  const std::vector<nn::Parameter*>& parameters() { return part_.parameters(); }

 private:
  const dist::Mesh& mesh_;
  const std::unique_ptr<Device> device_ = make_cpu();
  ModelPart part_;
  std::unique_ptr<Parallelism> data_;
  std::vector<std::vector<Tensor>> parts_;  // by parameter and microbatch
};

TEST(TensorPrecision, SumsSharedGradientsInTheTypeOfTheReduction) {
  testing::open_plugins();
  const std::vector<Case> cases = {
      {.name = "tp 2", .shape = {.tp = 2}, .num_shared = 7},
      {.name = "tp 4", .shape = {.tp = 4}, .num_shared = 7},
      {.name = "tp 2, fsdp 2", .shape = {.dp_shard = 2, .tp = 2}, .num_shared = 7},
      {.name = "tp 2, fsdp 2, each",
       .shape = {.dp_shard = 2, .tp = 2},
       .sums_each = true,
       .num_shared = 7},
      {.name = "experts dealt over tp", .shape = {.tp = 2}, .expert = 2, .num_shared = 1},
      {.name = "experts cut over tp", .shape = {.tp = 2}, .expert_tensor = 2, .num_shared = 2},
      {.name = "experts cut over tp, same tokens",
       .shape = {.tp = 2},
       .expert_tensor = 2,
       .sequence = false,
       .num_shared = 1}};
  for (const Case& c : cases)
    testing::run_ranks(
        expert_test::expert_grid(c.shape, c.expert, c.expert_tensor), [&](const dist::Mesh& mesh) {
          NarrowRun wide(c, mesh, at::kFloat), narrow(c, mesh, at::kBFloat16);
          wide.step(c), narrow.step(c);
          int64_t num_shared = 0;
          std::string shared;
          for (size_t i = 0; i < wide.parameters().size(); ++i) {
            const nn::Parameter& p = *wide.parameters()[i];
            if (!wide.is_shared(p, c)) continue;
            ++num_shared, shared += " " + p.name();
            const std::string what = c.name + ": " + p.name();
            const Tensor whole = wide.expected(i);
            // rows of fsdp's shard
            const Tensor expected =
                p.shard().sizes() == whole.sizes() ? whole : slice_of(whole, p.slice());
            EXPECT_EQ(p.grad().scalar_type(), at::kFloat) << what;
            EXPECT_LE(relative_error(p.grad(), expected, whole), 1e-6) << what;
            EXPECT_GT(share_off_grid(p.grad()), 0.1) << what;
            if (!c.sums_each) {
              EXPECT_EQ(share_off_grid(narrow.parameters()[i]->grad()), 0) << what;
            }
          }
          EXPECT_EQ(num_shared, c.num_shared) << c.name << shared;
        });
}

}  // namespace
}  // namespace titan::tensor_precision_test
