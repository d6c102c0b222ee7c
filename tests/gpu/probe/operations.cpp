#include "operations.h"

#include <cmath>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <titan/ops/attention.h>
#include <titan/ops/clamped_swiglu.h>
#include <titan/ops/document_attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/fused.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "inputs.h"
#include "numbers.h"

namespace titan::probe {
namespace {

using Kind = Input::Kind;
using Inputs = std::vector<Input>;

const std::vector<at::ScalarType> kAllTypes = {at::kFloat, at::kBFloat16, at::kHalf};

// One rounding to bf16 gives a relative error of 1.7e-3 in the norm, to fp16 2.1e-4; several
// roundings add up like random numbers. Sums in fp32 lose a few units of 6e-8 times the root of
// their length.
constexpr Limits kOnePass = {.fp32 = 2e-6, .bf16 = 4e-3, .fp16 = 6e-4};
constexpr Limits kProducts = {.fp32 = 1e-5, .bf16 = 4e-3, .fp16 = 6e-4};
constexpr Limits kAttention = {.fp32 = 2e-5, .bf16 = 8e-3, .fp16 = 2e-3};
constexpr Limits kLoss = {.fp32 = 1e-5, .bf16 = 1e-2, .fp16 = 2e-3};

using Composed = std::function<Results(const Tensors&)>;

/// Outputs of `forward` and the gradients of its differentiable inputs.
std::function<Results(const Inputs&)> with_gradients(const Composed& forward) {
  return [forward](const Inputs& inputs) {
    Tensors values, differentiable;
    std::vector<std::string> names;
    for (const Input& input : inputs) {
      Tensor value = input.values;
      if (input.kind == Kind::differentiable) {
        value = value.detach().requires_grad_(true);
        differentiable.push_back(value);
        names.push_back("d" + input.name);
      }
      values.push_back(value);
    }
    Results results = forward(values);
    Tensors outputs, directions;
    for (Result& result : results) {
      outputs.push_back(result.values);
      directions.push_back(direction_like(result.values));
    }
    const Tensors gradients = torch::autograd::grad(outputs, differentiable, directions);
    for (Result& result : results) result.values = result.values.detach();
    for (size_t i = 0; i < gradients.size(); ++i) results.push_back({names[i], gradients[i]});
    return results;
  };
}

void add_norms(std::vector<Case>& cases) {
  struct Shape {
    int64_t rows, dim;
    bool is_large;
  };
  for (const Shape s : {Shape{257, 192, false}, {33, 77, false}, {2048, 4096, true}})
    for (const bool has_wide_weight : {false, true}) {
      const std::string shape =
          joined({s.rows, s.dim}) + (has_wide_weight ? ", weight in fp32" : "");
      auto types = kAllTypes;
      if (has_wide_weight) types = {at::kBFloat16};
      const auto weight = [has_wide_weight](const Tensor& w, const Tensor& x) {
        return has_wide_weight && x.scalar_type() != at::kDouble ? w.to(at::kFloat) : w;
      };
      const auto add = [&](const char* operation, std::function<Inputs(at::Device)> inputs,
                           const std::function<Results(const Tensors&)>& run) {
        cases.push_back({.operation = operation,
                         .shape = shape,
                         .types = types,
                         .limits = kOnePass,
                         .is_large = s.is_large,
                         .inputs = std::move(inputs),
                         .run = with_gradients(run)});
      };
      add(
          "rms_norm",
          [s](at::Device device) {
            return Inputs{{"x", normal({s.rows, s.dim}, device)},
                          {"weight", normal({s.dim}, device)}};
          },
          [weight](const Tensors& x) {
            return Results{{"y", ops::rms_norm(x[0], weight(x[1], x[0]), 1e-5)}};
          });
      add(
          "add_rms_norm",
          [s](at::Device device) {
            return Inputs{{"x", normal({s.rows, s.dim}, device)},
                          {"delta", normal({s.rows, s.dim}, device)},
                          {"weight", normal({s.dim}, device)}};
          },
          [weight](const Tensors& x) {
            const ops::AddedNorm out = ops::add_rms_norm(x[0], x[1], weight(x[2], x[0]), 1e-5);
            return Results{{"sum", out.sum}, {"normalized", out.normalized}};
          });
    }
}

void add_gates(std::vector<Case>& cases) {
  struct Shape {
    int64_t rows, width;
    bool is_large;
  };
  for (const Shape s : {Shape{257, 192, false}, {31, 77, false}, {2048, 14336, true}}) {
    const auto two = [s](at::Device device) {
      return Inputs{{"gate", normal({s.rows, s.width}, device)},
                    {"up", normal({s.rows, s.width}, device)}};
    };
    cases.push_back({.operation = "swiglu",
                     .shape = joined({s.rows, s.width}),
                     .types = kAllTypes,
                     .limits = kOnePass,
                     .is_large = s.is_large,
                     .inputs = two,
                     .run = with_gradients([](const Tensors& x) {
                       return Results{{"y", ops::swiglu(x[0], x[1])}};
                     })});
    cases.push_back({.operation = "swiglu",
                     .shape = joined({s.rows, s.width}) + ", halves of one product",
                     .types = kAllTypes,
                     .limits = kOnePass,
                     .is_large = s.is_large,
                     .inputs =
                         [s](at::Device device) {
                           return Inputs{{"packed", normal({s.rows, 2 * s.width}, device)}};
                         },
                     .run = with_gradients([s](const Tensors& x) {
                       return Results{{"y", ops::swiglu(x[0].narrow(1, 0, s.width),
                                                        x[0].narrow(1, s.width, s.width))}};
                     })});
    if (s.is_large) continue;
    cases.push_back({.operation = "clamped_swiglu",
                     .shape = joined({s.rows, s.width}),
                     .types = kAllTypes,
                     .limits = kOnePass,
                     .inputs =
                         [s](at::Device device) {
                           return Inputs{{"gate", normal({s.rows, s.width}, device, 5)},
                                         {"up", normal({s.rows, s.width}, device, 5)}};
                         },
                     .run = with_gradients([](const Tensors& x) {
                       return Results{{"y", ops::clamped_swiglu(x[0], x[1])}};
                     })});
  }
}

/// Queries, keys and values as views of one projection (B, S, (H + 2 KV) · hd).
struct Heads {
  int64_t batch, tokens, heads, kv_heads, width;
  bool is_large = false, is_causal = true;

  std::string text() const {
    return joined({batch, tokens, heads, width}) + ", " + std::to_string(kv_heads) + " key heads" +
           (is_causal ? "" : ", not causal");
  }
  Tensor make(at::Device device) const {
    return normal({batch, tokens, (heads + 2 * kv_heads) * width}, device);
  }
  /// (B, S, n, hd)
  Tensor part(const Tensor& packed, int64_t first, int64_t count) const {
    return packed.narrow(2, first * width, count * width).view({batch, tokens, count, width});
  }
  Tensor q(const Tensor& packed) const { return part(packed, 0, heads); }
  Tensor k(const Tensor& packed) const { return part(packed, heads, kv_heads); }
  Tensor v(const Tensor& packed) const { return part(packed, heads + kv_heads, kv_heads); }

  /// Runs `run`, whose last result is the gradient of the projection, and returns the gradient of
  /// each part: the gradient of the values would hide the others.
  std::function<Results(const Inputs&)> by_parts(std::function<Results(const Inputs&)> run) const {
    return [h = *this, run = std::move(run)](const Inputs& inputs) {
      Results results = run(inputs);
      const Tensor packed = results.back().values;
      results.pop_back();
      results.push_back({"dq", h.q(packed)});
      results.push_back({"dk", h.k(packed)});
      results.push_back({"dv", h.v(packed)});
      return results;
    };
  }
};

void add_rope(std::vector<Case>& cases) {
  for (const Heads h : {Heads{2, 257, 4, 2, 64}, {1, 33, 3, 1, 6}, {1, 2048, 32, 8, 128, true}})
    for (const bool has_positions : {false, true})
      cases.push_back(
          {.operation = "rope",
           .shape = h.text() + (has_positions ? ", positions" : ""),
           .types = kAllTypes,
           .limits = kOnePass,
           .is_large = h.is_large,
           .inputs =
               [h, has_positions](at::Device device) {
                 const int64_t half = h.width / 2;
                 // on the CPU, so that every device uses the same tables
                 const Tensor angles = at::arange(h.tokens, at::kDouble)
                                           .unsqueeze(1)
                                           .mul(at::arange(half, at::kDouble)
                                                    .mul(-std::log(1e4) / static_cast<double>(half))
                                                    .exp());
                 Inputs inputs = {{"packed", h.make(device)},
                                  {"cos", angles.cos().to(at::kFloat).to(device), Kind::table},
                                  {"sin", angles.sin().to(at::kFloat).to(device), Kind::table}};
                 if (has_positions)
                   inputs.push_back({"positions", integers(h.tokens, {h.batch, h.tokens}, device),
                                     Kind::as_it_is});
                 return inputs;
               },
           .run = with_gradients([h](const Tensors& x) {
             const auto [q, k] =
                 ops::rope(h.q(x[0]), h.k(x[0]), x[1], x[2], x.size() > 3 ? x[3] : Tensor());
             return Results{{"q", q}, {"k", k}};
           })});
}

void add_attention(std::vector<Case>& cases) {
  for (const Heads h :
       {Heads{2, 257, 4, 4, 64, false, false}, Heads{2, 257, 4, 2, 64}, Heads{1, 130, 8, 2, 128},
        Heads{1, 61, 4, 2, 20}, Heads{1, 2048, 32, 8, 128, true}, Heads{2, 1025, 16, 16, 64, true}})
    cases.push_back(
        {.operation = "attention",
         .shape = h.text(),
         .types = kAllTypes,
         .limits = kAttention,
         .is_large = h.is_large,
         .inputs =
             [h](at::Device device) {
               return Inputs{{"packed", h.make(device)}};
             },
         .run = h.by_parts(with_gradients([h](const Tensors& x) {
           return Results{
               {"out", ops::attention(h.q(x[0]).transpose(1, 2), h.k(x[0]).transpose(1, 2),
                                      h.v(x[0]).transpose(1, 2), {.causal = h.is_causal})}};
         }))});

  for (const Heads h :
       {Heads{2, 257, 4, 2, 64}, Heads{1, 130, 8, 2, 128}, Heads{1, 2048, 32, 8, 128, true}})
    cases.push_back(
        {.operation = "document_attention",
         .shape = h.text() + ", 5 documents a row",
         .types = kAllTypes,
         .limits = kAttention,
         .is_large = h.is_large,
         .inputs =
             [h](at::Device device) {
               const Tensor ends = at::arange(h.batch * h.tokens, at::kInt);
               Tensor documents = at::full({h.batch, h.tokens}, 0, at::kInt);
               const Tensor place = ends.remainder(h.tokens).view({h.batch, h.tokens});
               for (const int64_t end :
                    {h.tokens / 3, h.tokens / 3 + 1, h.tokens / 2, h.tokens - 7})
                 documents.add_(place.ge(end).to(at::kInt));
               return Inputs{{"packed", h.make(device)},
                             {"documents", documents, Kind::on_the_host}};
             },
         .run = h.by_parts(with_gradients([h](const Tensors& x) {
           return Results{
               {"out", ops::document_attention(h.q(x[0]).transpose(1, 2), h.k(x[0]).transpose(1, 2),
                                               h.v(x[0]).transpose(1, 2), x[1])}};
         }))});
}

void add_products(std::vector<Case>& cases) {
  struct Shape {
    int64_t rows, in, out;
    bool is_large;
  };
  for (const Shape s : {Shape{257, 192, 384, false},
                        {33, 77, 50, false},
                        {2048, 4096, 6144, true},
                        {2048, 14336, 4096, true}})
    cases.push_back({.operation = "linear",
                     .shape = joined({s.rows, s.in, s.out}),
                     .types = kAllTypes,
                     .limits = kProducts,
                     .is_large = s.is_large,
                     .inputs =
                         [s](at::Device device) {
                           return Inputs{{"x", normal({1, s.rows, s.in}, device)},
                                         {"weight", normal({s.out, s.in}, device, 0.02)}};
                         },
                     .run = with_gradients([](const Tensors& x) {
                       return Results{{"y", ops::linear(x[0], x[1])}};
                     })});

  struct Grouped {
    std::vector<int64_t> rows;
    int64_t in, out;
    bool is_large;
  };
  for (const Grouped& g :
       {Grouped{{0, 100, 1, 0, 156}, 64, 96, false}, Grouped{{17, 0, 40}, 50, 70, false},
        Grouped{{300, 0, 500, 248, 1, 255, 744, 0}, 4096, 1792, true}}) {
    int64_t total = 0;
    for (const int64_t rows : g.rows) total += rows;
    cases.push_back({.operation = "grouped_linear",
                     .shape = joined({total, g.in, g.out}) + ", " + std::to_string(g.rows.size()) +
                              " groups, empty ones among them",
                     .types = kAllTypes,
                     .limits = kProducts,
                     .is_large = g.is_large,
                     .inputs =
                         [g, total](at::Device device) {
                           const auto groups = static_cast<int64_t>(g.rows.size());
                           return Inputs{{"x", normal({total, g.in}, device)},
                                         {"weight", normal({groups, g.out, g.in}, device, 0.02)}};
                         },
                     .run = with_gradients([g](const Tensors& x) {
                       return Results{{"y", ops::grouped_linear(x[0], x[1], g.rows)}};
                     })});
  }
}

void add_ends(std::vector<Case>& cases) {
  struct Shape {
    int64_t rows, dim, words;
    bool is_large;
  };
  for (const Shape s : {Shape{257, 192, 1003, false},
                        {77, 40, 256, false},
                        {512, 4096, 128256, true},
                        {1100, 4096, 128256, true}}) {
    auto types = kAllTypes;
    if (s.rows == 1100) types = {at::kBFloat16};  // several chunks
    cases.push_back({.operation = "linear_cross_entropy",
                     .shape = joined({s.rows, s.dim, s.words}) + ", some labels ignored",
                     .types = types,
                     .limits = kLoss,
                     .is_large = s.is_large,
                     .inputs =
                         [s](at::Device device) {
                           const Tensor labels = integers(s.words, {s.rows}, device);
                           labels.narrow(0, 0, 3).fill_(ops::kIgnoredLabel);
                           labels.select(0, s.rows - 1).fill_(ops::kIgnoredLabel);
                           labels.select(0, 5).fill_(0);
                           labels.select(0, 6).fill_(s.words - 1);
                           const double size = 1 / std::sqrt(static_cast<double>(s.dim));
                           return Inputs{{"x", normal({s.rows, s.dim}, device)},
                                         {"weight", normal({s.words, s.dim}, device, size)},
                                         {"labels", labels, Kind::as_it_is}};
                         },
                     .run = with_gradients([](const Tensors& x) {
                       return Results{{"loss", ops::linear_cross_entropy(x[0], x[1], x[2])}};
                     })});
  }

  for (const Shape s :
       {Shape{514, 192, 1003, false}, {61, 7, 20, false}, {2048, 4096, 128256, true}})
    cases.push_back({.operation = "embedding",
                     .shape = joined({s.rows, s.dim, s.words}) + ", tokens repeat",
                     .types = kAllTypes,
                     .limits = kOnePass,
                     .is_large = s.is_large,
                     .inputs =
                         [s](at::Device device) {
                           const Tensor tokens = integers(s.words / 4, {1, s.rows}, device);
                           tokens.narrow(1, 0, s.rows / 2).remainder_(7);
                           return Inputs{{"weight", normal({s.words, s.dim}, device)},
                                         {"tokens", tokens, Kind::as_it_is}};
                         },
                     .run = with_gradients([](const Tensors& x) {
                       return Results{{"rows", ops::embedding(x[0], x[1])}};
                     })});
}

}  // namespace

double Limits::of(at::ScalarType type) const {
  return type == at::kBFloat16 ? bf16 : type == at::kHalf ? fp16 : fp32;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_norms(cases);
  add_gates(cases);
  add_rope(cases);
  add_attention(cases);
  add_products(cases);
  add_ends(cases);
  add_step_cases(cases);
  add_planted_cases(cases);
  return cases;
}

}  // namespace titan::probe
