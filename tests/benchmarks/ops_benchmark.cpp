// Speed of titan/ops against the same computation composed of ATen operations: forward and backward
// together, shapes of llama3's debug model (dim 256, 16 heads of 16, FFN 768, vocabulary 2048) at 2
// rows of 2048 tokens; attention also with heads of 64 and 128 at 2 rows of 1024, in bf16, and its
// forward pass alone; the experts of a mixture. Prints the ratio of each pair at the end. Threads:
// --threads=N (default 2).
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <titan/ops/token_rows.h>
#include <torch/csrc/autograd/autograd.h>

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

constexpr int64_t kRows = 2, kSeqLen = 2048, kTokens = kRows * kSeqLen;
constexpr int64_t kDim = 256, kHeads = 16, kHeadDim = 16, kHidden = 768, kVocab = 2048;

Tensor leaf(at::IntArrayRef shape) {
  return at::randn(shape).requires_grad_();
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const int64_t half = x.size(3) / 2;
  return x * cos + at::cat({-x.narrow(3, half, half), x.narrow(3, 0, half)}, 3) * sin;
}

struct Case {
  std::string name;
  Tensors inputs;
  Function fused, composed;
};

Tensors heads(int64_t kv_heads) {
  const auto make = [](int64_t n) {
    return at::randn({kRows, kSeqLen, n, kHeadDim}).transpose(1, 2).requires_grad_();
  };
  return {make(kHeads), make(kv_heads), make(kv_heads)};
}

/// q, k and v of which none wants a gradient: only the forward pass is run.
Tensors without_gradient(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& x : inputs) out.push_back(x.detach());
  return out;
}

struct HeadShape {
  int64_t seq_len, heads, dim;
};

/// Causal attention, a key head for each query head, beside ATen's flash kernel.
std::vector<Case> attention_cases(const Function& fused, const Function& composed) {
  std::vector<Case> out;
  for (const HeadShape& s :
       {HeadShape{2048, 16, 16}, HeadShape{1024, 12, 64}, HeadShape{1024, 8, 128}})
    for (const auto& [type, suffix] :
         {std::pair{at::kFloat, ""}, std::pair{at::kBFloat16, "_bf16"}}) {
      Tensors inputs;
      for (int i = 0; i < 3; ++i)
        inputs.push_back(at::randn({kRows, s.seq_len, s.heads, s.dim}, at::dtype(type))
                             .transpose(1, 2)
                             .requires_grad_());
      const std::string name = "attention_hd" + std::to_string(s.dim) + suffix;
      out.push_back({name, inputs, fused, composed});
      out.push_back({name + "_forward", without_gradient(inputs), fused, composed});
    }
  return out;
}

struct ExpertShape {
  int64_t experts, top_k, hidden;
};

/// x, w1, w2, w3 and weights (tokens, top_k) -> what the experts of each token make of it, beside a
/// loop that takes the tokens of each expert and adds what becomes of them, as transformers does.
std::vector<Case> expert_cases() {
  using namespace titan::ops;  // NOLINT: names of the functions that are measured
  std::vector<Case> out;
  for (const ExpertShape& s : {ExpertShape{8, 2, 512}, ExpertShape{64, 8, 128}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const auto precise = c10::promoteTypes(type, at::kFloat);
      const auto make = [&](at::IntArrayRef shape, double scale) {
        return (at::randn(shape) * scale).to(type).requires_grad_();
      };
      const Tensors inputs = {make({kTokens, kDim}, 1), make({s.experts, s.hidden, kDim}, 0.05),
                              make({s.experts, kDim, s.hidden}, 0.05),
                              make({s.experts, s.hidden, kDim}, 0.05),
                              at::rand({kTokens, s.top_k}).to(precise).requires_grad_()};
      const Tensor chosen =
          at::rand({kTokens, s.experts}).argsort(int64_t{-1}, false).narrow(1, 0, s.top_k);
      const Function grouped = [chosen, s](const Tensors& in) -> Tensors {
        const Tensor flat = chosen.flatten(), order = flat.argsort(/*stable=*/true, 0, false);
        const Tensor counts = flat.bincount({}, s.experts);
        const at::IntArrayRef rows(counts.const_data_ptr<int64_t>(),
                                   static_cast<size_t>(s.experts));
        const Tensor x = rows_of_slots(in[0], order);
        const Tensor gate = grouped_linear(x, in[1], rows), up = grouped_linear(x, in[3], rows);
        const Tensor y = grouped_linear(swiglu(gate, up), in[2], rows);
        return {sum_of_slots(in_order_of_slots(y, order), in[4])};
      };
      const Function loop = [chosen, s](const Tensors& in) -> Tensors {
        Tensor y = at::zeros_like(in[0]);
        for (int64_t e = 0; e < s.experts; ++e) {
          const Tensors at = chosen.eq(e).nonzero_numpy();
          const Tensor x = in[0].index({at[0]});
          const Tensor hidden = at::silu(at::linear(x, in[1][e])) * at::linear(x, in[3][e]);
          const Tensor made =
              at::linear(hidden, in[2][e]) * in[4].index({at[0], at[1]}).unsqueeze(1);
          y = y.index_add(0, at[0], made.to(y.scalar_type()));
        }
        return {y};
      };
      std::string name = "experts_" + std::to_string(s.top_k) + "_of_" + std::to_string(s.experts);
      if (type != at::kFloat) name += type == at::kDouble ? "_double" : "_bf16";
      out.push_back({name, inputs, grouped, loop});
    }
  return out;
}

std::vector<Case> cases() {
  const Tensor cos = at::randn({kSeqLen, kHeadDim / 2}), sin = at::randn({kSeqLen, kHeadDim / 2});
  const Tensor cos_pair = at::cat({cos, cos}, 1).view({1, kSeqLen, 1, kHeadDim});
  const Tensor sin_pair = at::cat({sin, sin}, 1).view({1, kSeqLen, 1, kHeadDim});
  const Tensor ids = at::randint(kVocab, {kRows, kSeqLen}, at::kLong), labels = ids.flatten();
  const auto attend = [](const Tensors& in) -> Tensors {
    return {titan::ops::attention(in[0], in[1], in[2])};
  };
  const auto aten_attend = [](const Tensors& in) -> Tensors {
    return {at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, /*is_causal=*/true,
                                             std::nullopt, /*enable_gqa=*/true)};
  };
  std::vector<Case> all{
      {"rms_norm",
       {leaf({kRows, kSeqLen, kDim}), leaf({kDim})},
       [](const Tensors& in) -> Tensors { return {titan::ops::rms_norm(in[0], in[1], 1e-5)}; },
       [](const Tensors& in) -> Tensors { return {at::rms_norm(in[0], {kDim}, in[1], 1e-5)}; }},
      {"swiglu",
       {leaf({kRows, kSeqLen, kHidden}), leaf({kRows, kSeqLen, kHidden})},
       [](const Tensors& in) -> Tensors { return {titan::ops::swiglu(in[0], in[1])}; },
       [](const Tensors& in) -> Tensors { return {at::silu(in[0]) * in[1]}; }},
      {"rope",
       {leaf({kRows, kSeqLen, kHeads, kHeadDim}), leaf({kRows, kSeqLen, kHeads, kHeadDim})},
       [=](const Tensors& in) -> Tensors {
         auto [q, k] = titan::ops::rope(in[0], in[1], cos, sin, {});
         return {q, k};
       },
       [=](const Tensors& in) -> Tensors {
         return {rotate(in[0], cos_pair, sin_pair), rotate(in[1], cos_pair, sin_pair)};
       }},
      {"attention_4_kv_heads", heads(4), attend, aten_attend},
      {"linear_cross_entropy",
       {leaf({kTokens, kDim}), leaf({kVocab, kDim})},
       [=](const Tensors& in) -> Tensors {
         return {titan::ops::linear_cross_entropy(in[0], in[1], labels)};
       },
       [=](const Tensors& in) -> Tensors {
         return {at::cross_entropy_loss(at::linear(in[0], in[1]), labels, {}, at::Reduction::Sum)};
       }},
      {"embedding",
       {leaf({kVocab, kDim})},
       [=](const Tensors& in) -> Tensors { return {titan::ops::embedding(in[0], ids)}; },
       [=](const Tensors& in) -> Tensors { return {at::embedding(in[0], ids)}; }},
      {"linear",
       {leaf({kRows, kSeqLen, kDim}), leaf({kHidden, kDim})},
       [](const Tensors& in) -> Tensors { return {titan::ops::linear(in[0], in[1])}; },
       [](const Tensors& in) -> Tensors { return {at::linear(in[0], in[1])}; }},
  };
  for (Case& c : attention_cases(attend, aten_attend)) all.push_back(std::move(c));
  for (Case& c : expert_cases()) all.push_back(std::move(c));
  return all;
}

void run(benchmark::State& state, const Function& f, const Tensors& inputs, const Tensors& seeds) {
  for (auto _ : state) {
    const Tensors outputs = f(inputs);
    if (!outputs[0].requires_grad()) continue;
    benchmark::DoNotOptimize(torch::autograd::grad(outputs, inputs, seeds));
  }
}

/// Keeps the median of each benchmark for the table of ratios.
class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median" || run.run_type == Run::RT_Iteration) {
        times_[run.run_name.function_name] = {run.GetAdjustedRealTime(), run.GetAdjustedCPUTime()};
      }
    }
  }
  void print() const {
    std::printf("\n%-24s %10s %10s %10s %16s\n", "operation", "titan ms", "ATen ms", "ATen/titan",
                "of CPU time");
    for (const auto& [name, own] : times_) {
      const auto other = times_.find("aten/" + name.substr(name.find('/') + 1));
      if (name.rfind("titan/", 0) != 0 || other == times_.end()) continue;
      const Times& aten = other->second;
      std::printf("%-24s %10.3f %10.3f %10.2f %16.2f\n", name.c_str() + 6, own.real, aten.real,
                  aten.real / own.real, aten.cpu / own.cpu);
    }
  }

 private:
  struct Times {
    double real, cpu;
  };
  std::map<std::string, Times> times_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  int threads = 2;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--threads=", 0) == 0) threads = std::atoi(argument.c_str() + 10);
  }
  at::set_num_threads(threads);
  const std::vector<Case> all = cases();
  for (const Case& c : all) {
    Tensors seeds;
    for (const Tensor& out : c.fused(c.inputs)) {
      seeds.push_back(out.dim() == 0 ? Tensor() : at::randn(out.sizes(), out.options()));
    }
    for (const auto& [side, f] : {std::pair{"titan/", &c.fused}, std::pair{"aten/", &c.composed}}) {
      benchmark::RegisterBenchmark(
          (side + c.name).c_str(),
          [&c, f = f, seeds](benchmark::State& state) { run(state, *f, c.inputs, seeds); })
          ->MeasureProcessCPUTime()
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  Ratios ratios;
  benchmark::RunSpecifiedBenchmarks(&ratios);
  ratios.print();
  return 0;
}
