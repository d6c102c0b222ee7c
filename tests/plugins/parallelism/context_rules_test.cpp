// Context parallelism of layers with an attention rule, against a softmax over masked scores of the
// whole row: windows, chunks and sinks that span ranks.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <titan/nn/attention_rules.h>

#include "tests/plugins/parallelism/context_fixture.h"
#include "tests/sdk/nn/attention_rules_fixture.h"

namespace titan::context_test {
namespace {

using attention_test::masked_attention;
using attention_test::Ruled;

constexpr double kNear = 1e-12;

void expect_rule(const ContextCase& c, const Ruled& r, const Inputs& in) {
  SCOPED_TRACE(r.name);
  const Results alone =
      outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return masked_attention(q, k, v, r.sight, in.documents);
      });
  expect_equal(c, run_cut(c, in, r.rule), alone, kNear);
}

std::vector<Ruled> some_rules() {
  std::vector<Ruled> rules;
  for (const int64_t size : {1, 5, 9, 24, 40})
    rules.push_back(attention_test::window(size)), rules.push_back(attention_test::chunk(size));
  return rules;
}

TEST(ContextRules, AreThoseOfTheWholeRow) {
  const Inputs in = random_inputs({.seq_len = 24}, 3).as(at::kDouble);
  for (const ContextCase& c : all_cases({2, 3}))
    for (const Ruled& r : some_rules()) expect_rule(c, r, in);
}

TEST(ContextRules, StayWithinDocumentsThatReachOverTheCuts) {
  const Inputs in =
      random_inputs({.seq_len = 24}, 4, documents_from({{5, 11}, {}}, 24)).as(at::kDouble);
  for (const ContextCase& c : all_cases({2, 4}))
    for (const Ruled& r : some_rules()) expect_rule(c, r, in);
}

/// Sinks count once for the whole row: the sum of their gradients over all ranks equals that of one
/// rank.
TEST(ContextRules, JoinSinksOnceWhateverTheCut) {
  const Inputs in = random_inputs({.seq_len = 24}, 5).as(at::kDouble);
  const Ruled r = attention_test::window(9);
  const auto theirs = attention_test::make_sinks(4);
  const Tensor whole = masked_attention(in.q, in.k, in.v, r.sight, {}, theirs->value());
  whole.backward(in.direction);
  for (const ContextCase& c : all_cases({2, 3})) {
    const auto size = static_cast<size_t>(c.cp);
    std::vector<Tensor> outs(size), gradients(size);
    titan::testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
      const dist::Group group = mesh.group("cp");
      const auto sinks = attention_test::make_sinks(4);
      const auto kernel = context_parallel::make_kernel(
          c.cut(), group.rank(), context_parallel::make_exchange(c.method, group),
          nn::with_sinks(r.rule, sinks));
      const auto own = [&](const Tensor& x) { return share(c, group.rank(), x); };
      const Tensor out = kernel->attend(own(in.q), own(in.k), own(in.v), Batch());
      out.backward(own(in.direction));
      outs[static_cast<size_t>(group.rank())] = out.detach();
      gradients[static_cast<size_t>(group.rank())] = sinks->grad();
    });
    Tensor sum = theirs->grad();
    for (size_t rank = 0; rank < size; ++rank) {
      const Tensor expected = share(c, static_cast<int64_t>(rank), whole.detach());
      EXPECT_LT((outs[rank] - expected).abs().max().item<double>(), kNear) << c.text();
      sum = sum - gradients[rank];
    }
    EXPECT_LT(sum.abs().max().item<double>(), kNear) << c.text();
  }
}

}  // namespace
}  // namespace titan::context_test
