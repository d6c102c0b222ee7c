#include "tests/plugins/parallelism/context_fixture.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <titan/ops/attention.h>
#include <titan/ops/document_attention.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::context_test {

std::string ContextCase::text() const {
  return "cp " + std::to_string(cp) +
         (method == RotateMethod::alltoall ? ", alltoall" : ", allgather") +
         (balancer == LoadBalancer::headtail ? ", headtail" : ", none");
}

std::vector<ContextCase> all_cases(const std::vector<int64_t>& degrees) {
  std::vector<ContextCase> cases;
  for (const int64_t cp : degrees)
    for (const auto method : {RotateMethod::allgather, RotateMethod::alltoall})
      for (const auto balancer : {LoadBalancer::headtail, LoadBalancer::none})
        cases.push_back({cp, method, balancer});
  return cases;
}

Inputs Inputs::as(at::ScalarType type) const {
  return {q.to(type), k.to(type), v.to(type), direction.to(type), documents};
}

Inputs random_inputs(const Shape& s, int64_t seed, Tensor documents) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  const auto random = [&](int64_t heads) {
    return at::randn({s.rows, s.seq_len, heads, s.head_dim}, generator,
                     at::TensorOptions().dtype(at::kDouble))
        .transpose(1, 2);
  };
  const Tensor q = random(s.heads), k = random(s.kv_heads), v = random(s.kv_heads);
  return {q, k, v, random(s.heads), std::move(documents)};
}

Tensor documents_from(const std::vector<std::vector<int64_t>>& starts, int64_t seq_len) {
  Tensor documents = at::zeros({static_cast<int64_t>(starts.size()), seq_len}, at::kInt);
  for (size_t row = 0; row < starts.size(); ++row)
    for (const int64_t start : starts[row])
      documents[static_cast<int64_t>(row)].narrow(0, start, seq_len - start).add_(1);
  return documents;
}

const std::vector<std::string> kResultNames = {"output", "gradient of q", "gradient of k",
                                               "gradient of v"};

Results outputs_and_gradients(const Inputs& in, const Attend& attend) {
  const std::vector<Tensor> leaves = {in.q.detach().requires_grad_(),
                                      in.k.detach().requires_grad_(),
                                      in.v.detach().requires_grad_()};
  Results results = {attend(leaves[0], leaves[1], leaves[2])};
  const auto gradients = torch::autograd::grad({results[0]}, leaves, {in.direction});
  results.insert(results.end(), gradients.begin(), gradients.end());
  results[0] = results[0].detach();
  return results;
}

Results run_alone(const Inputs& in) {
  return outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return in.documents.defined() ? ops::document_attention(q, k, v, in.documents)
                                  : ops::attention(q, k, v);
  });
}

Tensor share(const ContextCase& c, int64_t rank, const Tensor& x) {
  const Tensor by_tokens = x.transpose(1, 2);
  return c.cut().share_of(rank, by_tokens).transpose(1, 2);
}

Results run_rank(const ContextCase& c, const dist::Group& group, const Inputs& in,
                 c10::Device device, const RulePtr& rule) {
  const auto own = [&](const Tensor& x) { return share(c, group.rank(), x).to(device); };
  const auto kernel = context_parallel::make_kernel(
      c.cut(), group.rank(), context_parallel::make_exchange(c.method, group), rule);
  Batch batch;
  if (in.documents.defined()) batch.documents = c.cut().in_rank_order(in.documents);
  return outputs_and_gradients({own(in.q), own(in.k), own(in.v), own(in.direction)},
                               [&](const Tensor& q, const Tensor& k, const Tensor& v) {
                                 return kernel->attend(q, k, v, batch);
                               });
}

std::vector<Results> run_cut(const ContextCase& c, const Inputs& in, const RulePtr& rule) {
  std::vector<Results> ranks(static_cast<size_t>(c.cp));
  testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
    ranks[static_cast<size_t>(mesh.rank())] = run_rank(c, mesh.group("cp"), in, c10::kCPU, rule);
  });
  return ranks;
}

void expect_equal(const ContextCase& c, const std::vector<Results>& ranks, const Results& alone,
                  double tolerance) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t i = 0; i < alone.size(); ++i) {
      const Tensor expected = share(c, static_cast<int64_t>(rank), alone[i]).to(at::kDouble);
      const Tensor actual = ranks[rank].at(i);
      ASSERT_EQ(actual.sizes(), expected.sizes()) << kResultNames[i];
      const double error = (actual.to(at::kDouble) - expected).abs().max().item<double>();
      const double largest = alone[i].to(at::kDouble).abs().max().item<double>();
      EXPECT_LE(error, tolerance * std::max(largest, 1.0))
          << kResultNames[i] << " of rank " << rank;
    }
}

}  // namespace titan::context_test
