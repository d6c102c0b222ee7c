// The operations of a step of an 8B model.
#include <algorithm>
#include <array>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <titan/error.h>
#include <titan/ops/adamw_step.h>
#include <titan/ops/attention.h>
#include <titan/ops/document_attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/fused.h>
#include <titan/ops/fused_head.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>

#include "inputs.h"
#include "speed.h"

namespace titan::probe {

void Speed::measure_norms() {
  const int64_t rows = sizes_.tokens, dim = sizes_.dim;
  const double once = 2.0 * static_cast<double>(rows * dim);  // bytes
  both(
      "rms_norm", joined({rows, dim}), {.bytes = 2 * once}, {.bytes = 3 * once}, 2,
      [&] {
        return Tensors{normal({rows, dim}), normal({dim})};
      },
      [](const Tensors& x) { return Tensors{ops::rms_norm(x[0], x[1], 1e-5)}; });
  both(
      "add_rms_norm", joined({rows, dim}), {.bytes = 4 * once}, {.bytes = 4 * once}, 3,
      [&] {
        return Tensors{normal({rows, dim}), normal({rows, dim}), normal({dim})};
      },
      [](const Tensors& x) {
        const ops::AddedNorm out = ops::add_rms_norm(x[0], x[1], x[2], 1e-5);
        return Tensors{out.sum, out.normalized};
      });
}

void Speed::measure_gates() {
  const int64_t rows = sizes_.tokens, ffn = sizes_.ffn;
  const double once = 2.0 * static_cast<double>(rows * ffn);
  both(
      "swiglu", joined({rows, ffn}), {.bytes = 3 * once}, {.bytes = 5 * once}, 2,
      [&] {
        return Tensors{normal({rows, ffn}), normal({rows, ffn})};
      },
      [](const Tensors& x) { return Tensors{ops::swiglu(x[0], x[1])}; });
  row({"swiglu, halves of one product", "forward", joined({rows, ffn})}, {.bytes = 3 * once},
      bf16_peak_, [&] {
        std::vector<Launch> launches;
        for (size_t i = 0; i < num_copies(3 * once); ++i) {
          const Tensor packed = normal({rows, 2 * ffn});
          launches.push_back(
              [=] { ops::swiglu(packed.narrow(1, 0, ffn), packed.narrow(1, ffn, ffn)); });
        }
        return launches;
      });
}

Tensor Speed::heads(const Tensor& packed, int64_t first, int64_t count) const {
  return packed.narrow(2, first * sizes_.width, count * sizes_.width)
      .view({packed.size(0), packed.size(1), count, sizes_.width});
}

Tensors Speed::q_k_v(int64_t tokens) const {
  const auto& s = sizes_;
  const Tensor packed = normal({1, tokens, (s.heads + 2 * s.kv_heads) * s.width});
  return {heads(packed, 0, s.heads).detach(), heads(packed, s.heads, s.kv_heads).detach(),
          heads(packed, s.heads + s.kv_heads, s.kv_heads).detach()};
}

std::string Speed::text_of_heads(int64_t tokens) const {
  return joined({1, tokens, sizes_.heads, sizes_.width}) + ", " + std::to_string(sizes_.kv_heads) +
         " key heads";
}

void Speed::measure_rope() {
  const auto& s = sizes_;
  const double once = 2.0 * static_cast<double>(s.tokens * (s.heads + s.kv_heads) * s.width);
  both(
      "rope", text_of_heads(s.tokens), {.bytes = 2 * once}, {.bytes = 2 * once}, 2,
      [&] {
        Tensors inputs = q_k_v(s.tokens);
        inputs.pop_back();
        const Tensor angles = normal({s.tokens, s.width / 2}, at::kFloat);
        inputs.push_back(angles.cos());
        inputs.push_back(angles.sin());
        return inputs;
      },
      [](const Tensors& x) {
        const auto [q, k] = ops::rope(x[0], x[1], x[2], x[3], Tensor());
        return Tensors{q, k};
      });
}

void Speed::measure_attention() {
  const auto& s = sizes_;
  for (const int64_t tokens : {s.tokens, 2 * s.tokens}) {
    const double length = static_cast<double>(tokens);
    const double flops = 2 * length * length * static_cast<double>(s.heads * s.width);
    const double bytes = 4.0 * length * static_cast<double>((s.heads + s.kv_heads) * s.width);
    both(
        "attention", text_of_heads(tokens) + ", causal", {.bytes = bytes, .flops = flops},
        {.bytes = 2 * bytes, .flops = 2.5 * flops}, 3, [&] { return q_k_v(tokens); },
        [](const Tensors& x) {
          return Tensors{
              ops::attention(x[0].transpose(1, 2), x[1].transpose(1, 2), x[2].transpose(1, 2))};
        });
  }
  const int64_t each = s.tokens / 4;
  const double length = static_cast<double>(each);
  const double flops = 4 * 2 * length * length * static_cast<double>(s.heads * s.width);
  const double bytes = 4.0 * 4 * length * static_cast<double>((s.heads + s.kv_heads) * s.width);
  const Tensor documents =
      at::arange(4 * each, at::kLong).floor_divide(each).to(at::kInt).unsqueeze(0);
  both(
      "document_attention", text_of_heads(4 * each) + ", 4 documents",
      {.bytes = bytes, .flops = flops}, {.bytes = 2 * bytes, .flops = 2.5 * flops}, 3,
      [&] { return q_k_v(4 * each); },
      [documents](const Tensors& x) {
        return Tensors{ops::document_attention(x[0].transpose(1, 2), x[1].transpose(1, 2),
                                               x[2].transpose(1, 2), documents)};
      });
}

void Speed::measure_experts() {
  const auto& s = sizes_;
  const int64_t out = s.ffn / 2;
  const std::vector<int64_t> rows(static_cast<size_t>(s.experts), s.tokens / s.experts);
  const double flops = 2.0 * static_cast<double>(s.tokens * s.dim) * static_cast<double>(out);
  const double bytes =
      2.0 * static_cast<double>(s.tokens * (s.dim + out) + s.experts * s.dim * out);
  both(
      "grouped_linear",
      joined({s.tokens, s.dim, out}) + ", " + std::to_string(s.experts) + " groups",
      {.bytes = bytes, .flops = flops}, {.bytes = 2 * bytes, .flops = 2 * flops}, 2,
      [&] {
        return Tensors{normal({s.tokens, s.dim}),
                       normal({s.experts, out, s.dim}, at::kBFloat16, 0.02)};
      },
      [rows](const Tensors& x) { return Tensors{ops::grouped_linear(x[0], x[1], rows)}; });
}

void Speed::measure_ends() {
  const auto& s = sizes_;
  const std::string shape = joined({s.tokens, s.dim, s.words});
  const double flops = 6.0 * static_cast<double>(s.tokens * s.dim) * static_cast<double>(s.words);
  // logits are written, read and replaced by their gradient, which two products read
  const double bytes = 2.0 * 4 * static_cast<double>(s.tokens) * static_cast<double>(s.words);
  const auto inputs = [&] {
    return Tensors{normal({s.tokens, s.dim}), normal({s.words, s.dim}, at::kBFloat16, 0.02),
                   integers(s.words, {s.tokens})};
  };
  both("linear_cross_entropy", shape + ", with gradients", {.bytes = bytes, .flops = flops}, {}, 2,
       inputs,
       [](const Tensors& x) { return Tensors{ops::linear_cross_entropy(x[0], x[1], x[2])}; });
  row({"linear_cross_entropy", "its products alone", shape}, {.bytes = bytes, .flops = flops},
      bf16_peak_, [&] {
        const Tensors x = inputs();
        const int64_t chunk = ops::fused_head_rows(x[0], x[1]);
        Tensor logits = at::empty({chunk, s.words}, x[0].options());
        return std::vector<Launch>{[=, tokens = s.tokens] {
          for (int64_t first = 0; first < tokens; first += chunk) {
            const int64_t rows = std::min(chunk, tokens - first);
            const Tensor in = x[0].narrow(0, first, rows);
            Tensor part = logits.narrow(0, 0, rows);
            at::mm_out(part, in, x[1].t());
            at::mm(part, x[1]);
            at::mm(part.t(), in);
          }
        }};
      });

  const double rows_bytes = 2.0 * static_cast<double>(s.tokens * s.dim);
  const double table = 2.0 * static_cast<double>(s.words) * static_cast<double>(s.dim);
  both(
      "embedding", joined({s.tokens, s.dim, s.words}), {.bytes = 2 * rows_bytes},
      {.bytes = 2 * rows_bytes + table}, 1,
      [&] {
        return Tensors{normal({s.words, s.dim}), integers(s.words, {1, s.tokens})};
      },
      [](const Tensors& x) { return Tensors{ops::embedding(x[0], x[1])}; });
}

void Speed::measure_adamw() {
  const std::vector<int64_t> shape = {sizes_.dim, sizes_.ffn};
  const double count = static_cast<double>(sizes_.dim * sizes_.ffn);
  const auto bytes_each = [](at::ScalarType type) {
    return static_cast<double>(c10::elementSize(type));
  };
  constexpr ops::AdamWNumbers kStep{1e-3, 0.9, 0.95, 1e-8, 0.1};
  const at::ScalarType kinds[][3] = {{at::kFloat, at::kFloat, at::kFloat},
                                     {at::kBFloat16, at::kBFloat16, at::kFloat},
                                     {at::kBFloat16, at::kBFloat16, at::kBFloat16}};
  for (const auto& kind : kinds) {
    const at::ScalarType w = kind[0], g = kind[1], state = kind[2];
    const Work work = {.bytes =
                           count * (2 * bytes_each(w) + bytes_each(g) + 4 * bytes_each(state))};
    const std::string text = joined({shape[0], shape[1]}) + ", gradient " + c10::toString(g) +
                             ", states " + c10::toString(state);
    const auto make = [&] {
      return std::array{normal(shape, w), normal(shape, g), normal(shape, state, 0.1),
                        normal(shape, at::kFloat).square_().mul_(0.01).to(state),
                        at::full({}, 7, on_device().dtype(at::kFloat))};
    };
    for (const bool is_random : {false, true}) {
      if (is_random && w != at::kBFloat16) continue;
      row({"adamw_step", is_random ? "stochastic rounding" : "forward", text, w}, work, 0, [&] {
        const auto x = make();
        const auto update = [=] {
          const nn::Slice whole{{0, 0}, shape};
          return ops::adamw_step(x[0], x[1], x[2], x[3], x[4], kStep,
                                 is_random
                                     ? std::optional(ops::StochasticRounding{1, "w", shape, whole})
                                     : std::nullopt);
        };
        if (!update()) return std::vector<Launch>{};
        return std::vector<Launch>{[=] { update(); }};
      });
    }
    if (w != state || g != w) continue;
    row({"torch's fused adamw", "forward", text, w}, work, 0, [&] {
      const auto x = make();
      return std::vector<Launch>{[=] {
        const at::NoGradGuard no_grad;
        at::_fused_adamw_({x[0]}, {x[1]}, {x[2]}, {x[3]}, {}, {x[4]}, kStep.lr, kStep.beta1,
                          kStep.beta2, kStep.weight_decay, kStep.eps, false, false, {}, {});
      }};
    });
  }
}

}  // namespace titan::probe
