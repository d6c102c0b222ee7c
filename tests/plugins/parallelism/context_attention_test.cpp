// The context plugin's attention against attention of whole sequences on one rank: outputs,
// gradients, documents, numbers of heads, dtypes.
#include <array>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "plugins/parallelism/context/online_attention.h"
#include "tests/plugins/parallelism/context_fixture.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::context_test {
namespace {

/// Both dtypes, all methods and balancers: 1e-12 in double, 1e-5 in fp32.
void expect_as_one_rank(const std::vector<ContextCase>& cases, const Inputs& in) {
  for (const auto& [type, tolerance] :
       {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-5)}) {
    const Inputs typed = in.as(type);
    const Results alone = run_alone(typed);
    for (const ContextCase& c : cases) {
      SCOPED_TRACE(c.text() + ", " + at::toString(type));
      expect_equal(c, run_cut(c, typed), alone, tolerance);
    }
  }
}

/// `count` increasing positions in (0, seq_len), drawn at random.
std::vector<int64_t> random_starts(int64_t count, int64_t seq_len, int64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  std::vector<int64_t> starts;
  while (static_cast<int64_t>(starts.size()) < std::min(count, seq_len - 1)) {
    const int64_t place =
        at::randint(1, seq_len, {1}, generator, at::TensorOptions().dtype(at::kLong))
            .item<int64_t>();
    if (std::find(starts.begin(), starts.end(), place) == starts.end()) starts.push_back(place);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

TEST(ContextAttention, EqualsOneRankForAnyShapeAndDegree) {
  int64_t seed = 1;
  for (const int64_t cp : {1, 2, 3, 4, 5, 6, 7, 8})
    for (const int64_t share : cp % 2 == 0 ? std::array{1, 4} : std::array{2, 8}) {  // query heads per key head
      at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(++seed));
      const auto draw = [&](int64_t first, int64_t last) {
        return at::randint(first, last + 1, {1}, generator, at::TensorOptions().dtype(at::kLong))
            .item<int64_t>();
      };
      const int64_t kv_heads = draw(1, 2);
      const Shape shape{.rows = draw(1, 3),
                        .heads = kv_heads * share,
                        .kv_heads = kv_heads,
                        .seq_len = 2 * cp * draw(1, 9),
                        .head_dim = 8 * draw(1, 3)};
      SCOPED_TRACE("length " + std::to_string(shape.seq_len) + ", seed " + std::to_string(seed));
      expect_as_one_rank(all_cases({cp}), random_inputs(shape, seed));
    }
}

TEST(ContextAttention, StaysInsideDocuments) {
  int64_t seed = 100;
  for (const int64_t cp : {2, 3, 4, 8}) {
    const int64_t seq_len = 2 * cp * 5;
    std::vector<int64_t> singles;  // each token is its own document
    for (int64_t i = 1; i < seq_len; ++i) singles.push_back(i);
    const std::vector<std::vector<std::vector<int64_t>>> layouts = {
        {{}, {}, {}},                                      // one document per row, over all ranks
        {random_starts(2, seq_len, ++seed), {}, singles},  // rows with different documents
        {random_starts(4, seq_len, ++seed), random_starts(6, seq_len, ++seed), {seq_len - 1}},
        {{1}, {seq_len / 2}, {seq_len / 2 - 1, seq_len / 2, seq_len / 2 + 1}},
        {{5, 10, 15}, {5, 10, 15}, random_starts(10, seq_len, ++seed)}};  // two rows alike
    for (const auto& starts : layouts) {
      SCOPED_TRACE("layout " + std::to_string(&starts - layouts.data()));
      const Shape shape{.rows = 3, .seq_len = seq_len};
      expect_as_one_rank(all_cases({cp}),
                         random_inputs(shape, ++seed, documents_from(starts, seq_len)));
    }
  }
}

/// By torch, with the whole mask of visible keys.
Results run_torch(const Inputs& in) {
  const int64_t seq_len = in.q.size(2), rows = in.q.size(0);
  Tensor sees = at::ones({rows, 1, seq_len, seq_len}, at::kBool).tril();
  if (in.documents.defined())
    sees = sees.logical_and(in.documents.unsqueeze(2).eq(in.documents.unsqueeze(1)).unsqueeze(1));
  return outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return at::scaled_dot_product_attention(q, k, v, sees, 0.0, false, std::nullopt,
                                            /*enable_gqa=*/true);
  });
}

TEST(ContextAttention, EqualsTorchsAttentionWithAMask) {
  const Shape shape{.heads = 6, .kv_heads = 2, .seq_len = 48, .head_dim = 12};
  for (const Tensor& documents : {Tensor(), documents_from({{7, 8, 30}, {13}}, 48)}) {
    const Inputs in = random_inputs(shape, 6, documents);
    const Results expected = run_torch(in);
    for (const ContextCase& c : all_cases({2, 3, 4})) {
      SCOPED_TRACE(c.text());
      expect_equal(c, run_cut(c, in), expected, 1e-12);
    }
  }
}

/// Windowed attention with doubled scores, computed with whole matrices. A query sees the last keys
/// up to its own.
class WindowRule final : public nn::AttentionRule {
 public:
  static constexpr int64_t kWindow = 7;
  static constexpr double kScale = 0.6;

  bool needs_places() const override { return true; }
  ops::AttentionResult forward(const Tensor& q, const Tensor& k, const Tensor& v,
                               const nn::AttentionBlock& block) const override {
    const Tensor scores = scores_of(q, k, block);
    const Tensor logsumexp = scores.logsumexp(-1);
    const Tensor weights = (scores - logsumexp.clamp_min(-1e30).unsqueeze(-1)).exp();
    return {weights.matmul(repeated(v, q)), logsumexp};
  }
  ops::AttentionGradients backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                   const Tensor& v, const ops::AttentionResult& whole,
                                   const nn::AttentionBlock& block) const override {
    const Tensor weights = (scores_of(q, k, block) - whole.logsumexp.unsqueeze(-1)).exp();
    const Tensor dv = weights.transpose(2, 3).matmul(grad_out);
    const Tensor dweights = grad_out.matmul(repeated(v, q).transpose(2, 3));
    const Tensor dscores = kScale * weights * (dweights - (grad_out * whole.out).sum(-1, true));
    const Tensor dk = dscores.transpose(2, 3).matmul(q);
    return {dscores.matmul(repeated(k, q)), summed(dk, k), summed(dv, v)};
  }

 private:
  static Tensor repeated(const Tensor& x, const Tensor& q) {
    return x.repeat_interleave(q.size(1) / x.size(1), 1);
  }
  static Tensor summed(const Tensor& x, const Tensor& like) {
    return x.reshape({x.size(0), like.size(1), -1, x.size(2), x.size(3)}).sum(2);
  }
  static Tensor scores_of(const Tensor& q, const Tensor& k, const nn::AttentionBlock& block) {
    const Tensor ahead = block.query_places.unsqueeze(1) - block.key_places.unsqueeze(0);
    EXPECT_EQ(ahead.sizes(), (std::vector<int64_t>{q.size(2), k.size(2)}));
    const Tensor scores = kScale * q.matmul(repeated(k, q).transpose(2, 3));
    return scores.masked_fill(ahead.lt(0).logical_or(ahead.ge(kWindow)), -INFINITY);
  }
};

TEST(ContextAttention, FollowsTheRuleOfTheLayer) {
  const auto rule = std::make_shared<const WindowRule>();
  const Shape shape{.heads = 6, .kv_heads = 2, .seq_len = 48, .head_dim = 12};
  for (const Tensor& documents : {Tensor(), documents_from({{7, 8, 30}, {13}}, 48)}) {
    const Inputs in = random_inputs(shape, 12, documents);
    Tensor sees = at::ones({2, 1, 48, 48}, at::kBool).tril().triu(1 - WindowRule::kWindow);
    if (documents.defined())
      sees = sees.logical_and(documents.unsqueeze(2).eq(documents.unsqueeze(1)).unsqueeze(1));
    const Results expected =
        outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return at::scaled_dot_product_attention(q, k, v, sees, 0.0, false, WindowRule::kScale,
                                                  /*enable_gqa=*/true);
        });
    const Results alone =
        outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return nn::attend(q, k, v, documents, rule);
        });
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(alone[i].allclose(expected[i], 1e-11, 1e-12)) << kResultNames[i];
    for (const ContextCase& c : all_cases({2, 3, 4})) {
      SCOPED_TRACE(c.text());
      expect_equal(c, run_cut(c, in, rule), expected, 1e-12);
    }
  }
}

TEST(ContextAttention, TakesTheScaleOfAPlainRule) {
  const Shape shape{.seq_len = 24};
  const auto rule = nn::plain_attention(0.9);
  for (const Tensor& documents : {Tensor(), documents_from({{5}, {}}, 24)}) {
    const Inputs in = random_inputs(shape, 13, documents);
    nn::AttentionCore core(0.9);
    const Results alone =
        outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return core.attend(q, k, v, Batch{.documents = documents});
        });
    const Results by_rule =
        outputs_and_gradients(in, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return nn::attend(q, k, v, documents, rule);
        });
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(at::equal(by_rule[i], alone[i])) << kResultNames[i];
    EXPECT_FALSE(alone[0].allclose(run_alone(in)[0]));
    for (const ContextCase& c : all_cases({2}))
      expect_equal(c, run_cut(c, in, core.rule()), alone, 1e-12);
  }
}

TEST(ContextAttention, OneDocumentIsNoDocumentBitForBit) {
  const Shape shape{.seq_len = 24};
  const Inputs plain = random_inputs(shape, 7).as(at::kFloat);
  Inputs marked = plain;
  marked.documents = documents_from({{}, {}}, shape.seq_len);
  for (const ContextCase& c : all_cases({3})) {
    const auto a = run_cut(c, plain), b = run_cut(c, marked);
    for (size_t rank = 0; rank < a.size(); ++rank)
      for (size_t i = 0; i < a[rank].size(); ++i)
        EXPECT_TRUE(at::equal(a[rank][i], b[rank][i])) << c.text() << ", " << kResultNames[i];
  }
}

TEST(ContextAttention, GivesTheSameBitsEachTime) {
  const Inputs in =
      random_inputs({.seq_len = 40}, 8, documents_from({{3, 17}, {}}, 40)).as(at::kFloat);
  for (const ContextCase& c : all_cases({4})) {
    const auto first = run_cut(c, in), second = run_cut(c, in);
    for (size_t rank = 0; rank < first.size(); ++rank)
      for (size_t i = 0; i < first[rank].size(); ++i)
        EXPECT_TRUE(at::equal(first[rank][i], second[rank][i])) << c.text();
  }
}

TEST(ContextAttention, TakesNarrowTypes) {
  // errors of 16-bit types come from rounding inputs and results, also those of blocks
  for (const auto& [type, tolerance] :
       {std::pair(at::kBFloat16, 3e-2), std::pair(at::kHalf, 4e-3)}) {
    const Inputs narrow =
        random_inputs({.seq_len = 48}, 9, documents_from({{20}, {}}, 48)).as(type);
    const Results alone = run_alone(narrow.as(at::kDouble));
    for (const ContextCase& c : all_cases({2, 4})) {
      SCOPED_TRACE(c.text() + ", " + at::toString(type));
      const std::vector<Results> ranks = run_cut(c, narrow);
      for (const Results& results : ranks)
        for (const Tensor& result : results) EXPECT_EQ(result.scalar_type(), type);
      expect_equal(c, ranks, alone, tolerance);
    }
  }
}

/// The loss Σ output · direction over all ranks, without gradients.
double loss_of(const ContextCase& c, const Inputs& in) {
  std::vector<double> sums(static_cast<size_t>(c.cp));
  testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
    const at::NoGradGuard no_grad;
    const dist::Group& group = mesh.group("cp");
    const auto own = [&](const Tensor& x) { return share(c, group.rank(), x); };
    const auto kernel = context_parallel::make_kernel(
        c.cut(), group.rank(), context_parallel::make_exchange(c.method, group));
    const Batch batch{.documents = c.cut().in_rank_order(in.documents)};
    const Tensor out = kernel->attend(own(in.q), own(in.k), own(in.v), batch);
    EXPECT_FALSE(out.requires_grad());
    sums[static_cast<size_t>(group.rank())] = (out * own(in.direction)).sum().item<double>();
  });
  double sum = 0;
  for (const double share : sums) sum += share;
  return sum;
}

TEST(ContextAttention, GradientsAreThoseOfDifferences) {
  const ContextCase c{.cp = 2, .method = RotateMethod::alltoall};
  const Shape shape{.rows = 1, .heads = 2, .kv_heads = 1, .seq_len = 8, .head_dim = 2};
  const Inputs in = random_inputs(shape, 10, documents_from({{3}}, 8));
  const std::vector<Results> ranks = run_cut(c, in);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor input = std::vector<Tensor>{in.q, in.k, in.v}[i];
    Tensor numeric = at::zeros(input.sizes(), input.options());
    for (int64_t head = 0; head < input.size(1); ++head)
      for (int64_t token = 0; token < shape.seq_len; ++token)
        for (int64_t place = 0; place < shape.head_dim; ++place) {
          Tensor value = input[0][head][token][place];
          const double old = value.item<double>();
          value.fill_(old + kStep);
          const double above = loss_of(c, in);
          value.fill_(old - kStep);
          const double below = loss_of(c, in);
          value.fill_(old);
          numeric[0][head][token][place].fill_((above - below) / (2 * kStep));
        }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      EXPECT_TRUE(share(c, static_cast<int64_t>(rank), numeric)
                      .allclose(ranks[rank][i + 1], /*rtol=*/1e-7, /*atol=*/1e-8))
          << kResultNames[i + 1] << " of rank " << rank;
  }
}

TEST(ContextAttention, CannotBeDifferentiatedTwice) {
  const ContextCase c;
  const dist::Group group("cp", dist::make_fake_backend(0, 2));
  const Inputs in = random_inputs({.seq_len = 8}, 11);
  const auto kernel =
      context_parallel::make_kernel(c.cut(), 0, context_parallel::make_exchange(c.method, group));
  const Tensor q = share(c, 0, in.q).requires_grad_();
  const Tensor out = kernel->attend(q, share(c, 0, in.k), share(c, 0, in.v), {});
  EXPECT_THROW(torch::autograd::grad({out.sum()}, {q}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               Error);
}

TEST(OnlineAttention, MergesWhateverTheDifference) {
  using context_parallel::Block;
  using context_parallel::OnlineAttention;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor q = at::zeros({1, 1, 1, 1}, at::kFloat);
  const Block all{{0, 1}, {0, 1}, {0, 1}};
  const auto result = [](double out, double logsumexp) {
    return ops::AttentionResult{at::full({1, 1, 1, 1}, out, at::kFloat),
                                at::full({1, 1, 1}, logsumexp, at::kFloat)};
  };
  struct Case {
    double before, further, out, logsumexp;  // outputs are 1 and 3
  };
  for (const Case& c : {Case{0, 0, 2, std::log(2.0)}, Case{std::log(3.0), 0, 1.5, std::log(4.0)},
                        Case{500, -500, 1, 500}, Case{-500, 500, 3, 500},
                        Case{-1e30, 1e30, 3, 1e30}, Case{-kInfinity, 4, 3, 4},
                        Case{4, -kInfinity, 1, 4}, Case{-kInfinity, -kInfinity, 2, -kInfinity}}) {
    OnlineAttention running(q);
    running.set(all, result(1, c.before));
    running.merge(all, result(3, c.further));
    const ops::AttentionResult merged = running.finish();
    EXPECT_FLOAT_EQ(merged.out.item<float>(), static_cast<float>(c.out)) << c.before << c.further;
    EXPECT_FLOAT_EQ(merged.logsumexp.item<float>(), static_cast<float>(c.logsumexp));
  }
}

}  // namespace
}  // namespace titan::context_test
