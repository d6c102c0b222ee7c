// Attention of whole sequences, and the same sharded over ranks: random inputs, runs on one rank
// and on several, comparison. Used by the tests of the context plugin.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "plugins/parallelism/context/kernel.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::context_test {

using at::Tensor;
using context_parallel::LoadBalancer;
using context_parallel::RotateMethod;
using context_parallel::SequenceCut;

/// How a sequence is sharded, and how keys are exchanged.
struct ContextCase {
  int64_t cp = 2;
  RotateMethod method = RotateMethod::allgather;
  LoadBalancer balancer = LoadBalancer::headtail;

  SequenceCut cut() const { return {cp, balancer}; }
  std::string text() const;
};

std::vector<ContextCase> all_cases(const std::vector<int64_t>& degrees);

struct Shape {
  int64_t rows = 2, heads = 4, kv_heads = 2, seq_len = 16, head_dim = 8;
};

/// Inputs for a whole sequence, and the direction of gradients.
struct Inputs {
  Tensor q, k, v, direction;
  Tensor documents;  // undefined or int32 (rows, S)

  Inputs as(at::ScalarType type) const;
};

Inputs random_inputs(const Shape& s, int64_t seed, Tensor documents = {});

/// Documents that start at these tokens of each row, and at 0.
Tensor documents_from(const std::vector<std::vector<int64_t>>& starts, int64_t seq_len);

/// Output and gradients of q, k, v, by tokens: all (rows, heads, tokens, hd).
using Results = std::vector<Tensor>;
extern const std::vector<std::string> kResultNames;

using Attend = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;
Results outputs_and_gradients(const Inputs& in, const Attend& attend);

Results run_alone(const Inputs& in);

/// The share of `rank` of (rows, heads, S, hd).
Tensor share(const ContextCase& c, int64_t rank, const Tensor& x);

/// The results of one rank, which sees only its own share of `in`.
using RulePtr = std::shared_ptr<const nn::AttentionRule>;
Results run_rank(const ContextCase& c, const dist::Group& group, const Inputs& in,
                 c10::Device device = c10::kCPU, const RulePtr& rule = nn::plain_attention());

/// By rank.
std::vector<Results> run_cut(const ContextCase& c, const Inputs& in,
                             const RulePtr& rule = nn::plain_attention());

/// Largest difference over all ranks, relative to the largest value of the whole.
void expect_equal(const ContextCase& c, const std::vector<Results>& ranks, const Results& alone,
                  double tolerance);

}  // namespace titan::context_test
