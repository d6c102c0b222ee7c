// Speed of titan/ops compared with the same computation composed of ATen operations: forward and
// backward together, shapes of llama3's debug model (dim 256, 16 heads of 16, FFN 768, vocabulary
// 2048) at 2 rows of 2048 tokens. Also attention with heads of 64 and 128 at 2 rows of 1024, in
// bf16, and its forward alone; and the experts of a mixture (ops_benchmark_experts.cpp). Prints the
// ratio of each pair at the end. Threads: --threads=N (default 2).
#include "ops_benchmark.h"

#include <cstdio>
#include <cstdlib>
#include <map>

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
#include <benchmark/benchmark.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

namespace {

using namespace titan::benchmarks;  // NOLINT: what its header declares

constexpr int64_t kRows = 2, kSeqLen = 2048, kTokens = kRows * kSeqLen;
constexpr int64_t kDim = 256, kHeads = 16, kHeadDim = 16, kHidden = 768, kVocab = 2048;

Tensor leaf(at::IntArrayRef shape) {
  return at::randn(shape).requires_grad_();
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const int64_t half = x.size(3) / 2;
  return x * cos + at::cat({-x.narrow(3, half, half), x.narrow(3, 0, half)}, 3) * sin;
}

Tensors heads(int64_t kv_heads) {
  const auto make = [](int64_t n) {
    return at::randn({kRows, kSeqLen, n, kHeadDim}).transpose(1, 2).requires_grad_();
  };
  return {make(kHeads), make(kv_heads), make(kv_heads)};
}

/// q, k and v without requires_grad: only the forward is run.
Tensors without_gradient(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& x : inputs) out.push_back(x.detach());
  return out;
}

struct HeadShape {
  int64_t seq_len, heads, dim;
};

/// Causal attention with one key head per query head, compared with ATen's flash kernel.
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

void run(benchmark::State& state, const Function& f, const Tensors& inputs) {
  Tensors seeds;
  for (const Tensor& out : f(inputs)) {
    if (seeds.empty())
      state.counters["sum_of_squares"] = out.detach().to(at::kDouble).square().sum().item<double>();
    seeds.push_back(out.dim() == 0 ? Tensor() : at::randn(out.sizes(), out.options()));
  }
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
    for (const auto& [side, f] : {std::pair{"titan/", &c.fused}, std::pair{"aten/", &c.composed}}) {
      if (!*f) continue;
      benchmark::RegisterBenchmark(
          (side + c.name).c_str(),
          [&c, f = f](benchmark::State& state) { run(state, *f, c.inputs); })
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
