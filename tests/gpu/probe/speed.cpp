// Mode `speed`: ceilings of the device (matrix products, copies), then every operation of a step of
// an 8B model against them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <titan/error.h>
#include <titan/nn/linear.h>
#include <titan/ops/adamw_step.h>
#include <titan/ops/attention.h>
#include <titan/ops/document_attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/fused.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/quantize.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/clock.h"
#include "numbers.h"
#include "plugins/converters/float8/hardware.h"
#include "plugins/converters/float8/products.h"
#include "probe.h"

namespace titan::probe {
namespace {

using Launch = std::function<void()>;

/// Of a layer of an 8B model, or small ones for the CPU.
struct Sizes {
  int64_t tokens, dim, ffn, heads, kv_heads, width, words, gemm, copied, experts;
};
constexpr Sizes kEightB = {4096, 4096, 14336, 32, 8, 128, 128256, 8192, int64_t{1} << 30, 8};
constexpr Sizes kSmall = {64, 64, 160, 4, 2, 16, 512, 128, int64_t{1} << 20, 4};

/// What a launch moves and computes by its formula.
struct Work {
  double bytes = 0, flops = 0;
};

struct Timing {
  double median, fastest;  ///< seconds
};

/// Times launches one by one. On a GPU a matrix product of some milliseconds runs before them, so
/// that the host is ahead and events see the GPU's own time.
class Stopwatch {
 public:
  Stopwatch(Device& device, bool is_small) : device_(device), num_launches_(is_small ? 3 : 20) {
    if (device_.device().is_cpu()) return;
    const int64_t size = is_small ? 1024 : 8192;
    blocker_ =
        at::randn({size, size}, at::TensorOptions().device(device_.device())).to(at::kBFloat16);
    product_ = at::empty_like(blocker_);
    block();
    device_.synchronize();
    const double begin = core::monotonic_seconds();
    block();
    device_.synchronize();
    blocker_seconds_ = core::monotonic_seconds() - begin;
  }

  /// `launches` in turn, so that no launch finds its inputs in the cache of the one before.
  Timing time(const std::vector<Launch>& launches) {
    constexpr size_t kWarmups = 3;
    double host = 0;
    for (size_t i = 0; i < std::max(kWarmups, launches.size()); ++i) {
      const double begin = core::monotonic_seconds();
      launches[i % launches.size()]();
      host = core::monotonic_seconds() - begin;
    }
    device_.synchronize();
    std::vector<double> seconds =
        device_.device().is_cpu() ? by_clock(launches) : by_events(launches, host);
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front()};
  }

 private:
  void block() { at::mm_out(product_, blocker_, blocker_); }

  std::vector<double> by_clock(const std::vector<Launch>& launches) const {
    std::vector<double> seconds;
    for (size_t i = 0; i < num_launches_; ++i) {
      const double begin = core::monotonic_seconds();
      launches[i % launches.size()]();
      seconds.push_back(core::monotonic_seconds() - begin);
    }
    return seconds;
  }

  std::vector<double> by_events(const std::vector<Launch>& launches, double host) {
    const c10::impl::VirtualGuardImpl guard(device_.device().type());
    const c10::Stream stream = guard.getStream(device_.device());
    std::vector<c10::Event> events;
    for (size_t i = 0; i <= num_launches_; ++i)
      events.emplace_back(device_.device().type(), c10::EventFlag::BACKEND_DEFAULT);
    const double ahead = 2 * host * static_cast<double>(num_launches_);
    const auto blocks = std::clamp<int64_t>(std::llround(ahead / blocker_seconds_), 1, 20);
    for (int64_t i = 0; i < blocks; ++i) block();
    events[0].record(stream);
    for (size_t i = 0; i < num_launches_; ++i) {
      launches[i % launches.size()]();
      events[i + 1].record(stream);
    }
    device_.synchronize();
    std::vector<double> seconds;
    for (size_t i = 0; i < num_launches_; ++i)
      seconds.push_back(events[i].elapsedTime(events[i + 1]) * 1e-3);
    return seconds;
  }

  Device& device_;
  size_t num_launches_;
  Tensor blocker_, product_;
  double blocker_seconds_ = 1;
};

std::string joined(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

/// Each output's gradient for the differentiable inputs; computed from graphs made before.
using Forward = std::function<Tensors(const Tensors&)>;

class Speed {
 public:
  Speed(Device& device, const Options& options)
      : device_(device),
        options_(options),
        is_small_(options.is_small || device.device().is_cpu()),
        sizes_(is_small_ ? kSmall : kEightB),
        watch_(device, is_small_) {}

  bool run() {
    measure_copies();
    measure_products();
    measure_float8_products();
    print_line(Value::map({{"ceilings", Value::map({{"copy_gb_per_s", bandwidth_ * 1e-9},
                                                    {"bf16_tflops", bf16_peak_ * 1e-12},
                                                    {"float8_tflops", float8_peak_ * 1e-12}})}}));
    measure_norms();
    measure_gates();
    measure_rope();
    measure_attention();
    measure_experts();
    measure_ends();
    measure_adamw();
    measure_quantization();
    measure_float8_layers();
    return is_ok_;
  }

 private:
  at::TensorOptions on_device() const { return at::TensorOptions().device(device_.device()); }
  Tensor normal(at::IntArrayRef shape, at::ScalarType type = at::kBFloat16, double size = 1) const {
    return at::randn(shape, on_device().dtype(at::kFloat)).mul_(size).to(type);
  }
  Tensor integers(int64_t below, at::IntArrayRef shape) const {
    return at::randint(below, shape, on_device().dtype(at::kLong));
  }
  /// So many copies of inputs of `bytes` do not fit into a GPU's cache together.
  size_t num_copies(double bytes) const {
    if (is_small_) return 1;
    return static_cast<size_t>(std::clamp(std::ceil(256e6 / bytes), 1.0, 4.0));
  }

  struct Name {
    std::string operation, direction, shape;
    at::ScalarType type = at::kBFloat16;
  };

  /// `peak`: FLOP/s of the matrix units it uses. Returns FLOP/s; none where the row has failed.
  std::optional<Timing> row(const Name& name, const Work& work, double peak,
                            const std::function<std::vector<Launch>()>& make) {
    if (name.operation.find(options_.only) == std::string::npos) return std::nullopt;
    std::optional<Timing> timing;
    const Value head = Value::map({{"operation", name.operation},
                                   {"direction", name.direction},
                                   {"shape", name.shape},
                                   {"dtype", std::string(c10::toString(name.type))}});
    const bool is_ok = print_row(device_, head, [&] {
      const std::vector<Launch> launches = make();
      if (launches.empty())
        return Value::map({{"skipped", "the device has no such operation"}, {"ok", true}});
      timing = watch_.time(launches);
      const double seconds = timing->median;
      Value found = Value::map({{"us", seconds * 1e6}, {"fastest_us", timing->fastest * 1e6}});
      if (work.bytes > 0) {
        found["bytes"] = work.bytes;
        found["gb_per_s"] = work.bytes / seconds * 1e-9;
      }
      if (work.flops > 0) {
        found["flops"] = work.flops;
        found["tflops"] = work.flops / seconds * 1e-12;
      }
      const double moving = bandwidth_ > 0 ? work.bytes / bandwidth_ : 0;
      const double computing = peak > 0 ? work.flops / peak : 0;
      if (std::max(moving, computing) > 0) {
        found["bound"] = moving > computing ? "memory" : "matrix units";
        found["share"] = std::max(moving, computing) / seconds;
      }
      found["ok"] = true;
      return found;
    });
    is_ok_ = is_ok_ && is_ok;
    return timing;
  }

  /// Forward with a graph, and backward alone. `inputs`: makes the tensors, the first
  /// `num_differentiable` of which get gradients.
  void both(const std::string& operation, const std::string& shape, const Work& there,
            const Work& back, size_t num_differentiable, const std::function<Tensors()>& inputs,
            const Forward& forward) {
    struct Graph {
      Tensors inputs, differentiable, outputs, directions;
    };
    auto graphs = std::make_shared<std::vector<Graph>>();
    const auto prepare = [&] {
      const size_t copies = num_copies(there.bytes);
      while (graphs->size() < copies) {
        Graph graph{.inputs = inputs()};
        for (size_t i = 0; i < num_differentiable; ++i) {
          graph.inputs[i].requires_grad_(true);
          graph.differentiable.push_back(graph.inputs[i]);
        }
        graphs->push_back(std::move(graph));
      }
    };
    row({operation, "forward", shape}, there, bf16_peak_, [&] {
      prepare();
      std::vector<Launch> launches;
      for (const Graph& graph : *graphs) launches.push_back([&] { forward(graph.inputs); });
      return launches;
    });
    if (back.bytes + back.flops == 0) return;
    row({operation, "backward", shape}, back, bf16_peak_, [&] {
      prepare();
      std::vector<Launch> launches;
      for (Graph& graph : *graphs) {
        graph.outputs = forward(graph.inputs);
        for (const Tensor& output : graph.outputs)
          graph.directions.push_back(direction_like(output));
        launches.push_back([&] {
          torch::autograd::grad(graph.outputs, graph.differentiable, graph.directions,
                                /*retain_graph=*/true);
        });
      }
      return launches;
    });
  }

  void measure_copies() {
    const int64_t size = sizes_.copied;
    const auto timing = row({"copy", "forward", std::to_string(size >> 20) + " MiB", at::kByte},
                            {.bytes = 2.0 * static_cast<double>(size)}, 0, [&] {
                              const Tensor from = integers(255, {size / 8}).view(at::kByte);
                              const Tensor to = at::empty_like(from);
                              return std::vector<Launch>{[=] { to.copy_(from); }};
                            });
    if (timing) bandwidth_ = 2.0 * static_cast<double>(size) / timing->median;
  }

  struct Product {
    const char* layer;
    int64_t rows, in, out;
  };
  std::vector<Product> layer_products() const {
    const auto& s = sizes_;
    return {{"qkv", s.tokens, s.dim, (s.heads + 2 * s.kv_heads) * s.width},
            {"attention out", s.tokens, s.heads * s.width, s.dim},
            {"gate and up", s.tokens, s.dim, 2 * s.ffn},
            {"down", s.tokens, s.ffn, s.dim}};
  }

  /// (m, k) · (k, n); `left`, `right` as the layer has them in memory.
  void measure_product(const std::string& what, int64_t m, int64_t k, int64_t n, bool left_turned,
                       bool right_turned) {
    const Work work = {
        .bytes = 2.0 * static_cast<double>(m * k + k * n + m * n),
        .flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n)};
    const auto timing = row({"gemm", what, joined({m, k, n})}, work, 0, [&] {
      std::vector<Launch> launches;
      for (size_t i = 0; i < num_copies(work.bytes); ++i) {
        const Tensor a = left_turned ? normal({k, m}).t() : normal({m, k});
        const Tensor b = right_turned ? normal({n, k}).t() : normal({k, n});
        Tensor out = at::empty({m, n}, a.options());
        launches.push_back([=]() mutable { at::mm_out(out, a, b); });
      }
      return launches;
    });
    if (timing) bf16_peak_ = std::max(bf16_peak_, work.flops / timing->median);
  }

  void measure_products() {
    measure_product("square", sizes_.gemm, sizes_.gemm, sizes_.gemm, false, true);
    for (const Product& p : layer_products()) {
      const std::string layer = p.layer;
      measure_product(layer + ", forward", p.rows, p.in, p.out, false, true);
      measure_product(layer + ", dx", p.rows, p.out, p.in, false, false);
      measure_product(layer + ", dweight", p.out, p.rows, p.in, true, false);
    }
  }

  void measure_float8_product(const std::string& what, int64_t m, int64_t k, int64_t n,
                              bool by_rows, bool is_fast) {
    const Work work = {
        .bytes = static_cast<double>(m * k + k * n + 2 * m * n),
        .flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n)};
    const std::string operation = by_rows ? "scaled_mm rowwise" : "scaled_mm tensorwise";
    const auto timing =
        row({operation, what + (is_fast ? ", fast accumulation" : ""), joined({m, k, n}),
             at::kFloat8_e4m3fn},
            work, 0, [&] {
              std::vector<Launch> launches;
              for (size_t i = 0; i < num_copies(work.bytes); ++i) {
                const Tensor a = normal({m, k}, at::kFloat8_e4m3fn, 16);
                const Tensor b = normal({n, k}, at::kFloat8_e4m3fn, 16).t();
                const auto ones = [&](at::IntArrayRef shape) {
                  return at::ones(shape, on_device().dtype(at::kFloat));
                };
                const Tensor a_scale = by_rows ? ones({m, 1}) : ones({});
                const Tensor b_scale = by_rows ? ones({1, n}) : ones({});
                launches.push_back([=] {
                  at::_scaled_mm(a, b, a_scale, b_scale, {}, {}, at::kBFloat16, is_fast);
                });
              }
              return launches;
            });
    if (timing) float8_peak_ = std::max(float8_peak_, work.flops / timing->median);
  }

  void measure_float8_products() {
    if (!float8::multiplies_float8(device_.device())) return;
    const int64_t size = sizes_.gemm;
    measure_float8_product("square", size, size, size, false, true);
    measure_float8_product("square", size, size, size, false, false);
    measure_float8_product("square", size, size, size, true, true);
    for (const Product& p : layer_products())
      for (const bool by_rows : {false, true}) {
        measure_float8_product(std::string(p.layer) + ", forward", p.rows, p.in, p.out, by_rows,
                               true);
        if (by_rows) continue;
        measure_float8_product(std::string(p.layer) + ", dx", p.rows, p.out, p.in, false, false);
        measure_float8_product(std::string(p.layer) + ", dweight", p.out, p.rows, p.in, false,
                               false);
      }
  }

  void measure_norms() {
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

  void measure_gates() {
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

  /// (B, S, n, hd) of a product of all heads.
  Tensor heads(const Tensor& packed, int64_t first, int64_t count) const {
    return packed.narrow(2, first * sizes_.width, count * sizes_.width)
        .view({packed.size(0), packed.size(1), count, sizes_.width});
  }
  Tensors q_k_v(int64_t tokens) const {
    const auto& s = sizes_;
    const Tensor packed = normal({1, tokens, (s.heads + 2 * s.kv_heads) * s.width});
    return {heads(packed, 0, s.heads).detach(), heads(packed, s.heads, s.kv_heads).detach(),
            heads(packed, s.heads + s.kv_heads, s.kv_heads).detach()};
  }
  std::string text_of_heads(int64_t tokens) const {
    return joined({1, tokens, sizes_.heads, sizes_.width}) + ", " +
           std::to_string(sizes_.kv_heads) + " key heads";
  }

  void measure_rope() {
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

  void measure_attention() {
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

  void measure_experts() {
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

  void measure_ends() {
    const auto& s = sizes_;
    const std::string shape = joined({s.tokens, s.dim, s.words});
    const double flops = 6.0 * static_cast<double>(s.tokens * s.dim) * static_cast<double>(s.words);
    // logits are written, read and replaced by their gradient, which two products read
    const double bytes = 2.0 * 4 * static_cast<double>(s.tokens) * static_cast<double>(s.words);
    const auto inputs = [&] {
      return Tensors{normal({s.tokens, s.dim}), normal({s.words, s.dim}, at::kBFloat16, 0.02),
                     integers(s.words, {s.tokens})};
    };
    both("linear_cross_entropy", shape + ", with gradients", {.bytes = bytes, .flops = flops}, {},
         2, inputs,
         [](const Tensors& x) { return Tensors{ops::linear_cross_entropy(x[0], x[1], x[2])}; });
    row({"linear_cross_entropy", "its products alone", shape}, {.bytes = bytes, .flops = flops},
        bf16_peak_, [&] {
          const Tensors x = inputs();
          const int64_t chunk = ops::chunk_rows(s.tokens, s.words, int64_t{256} << 20);
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

  void measure_adamw() {
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
            return ops::adamw_step(
                x[0], x[1], x[2], x[3], x[4], kStep,
                is_random ? std::optional(ops::StochasticRounding{1, "w", shape, whole})
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

  void measure_quantization() {
    const int64_t rows = sizes_.tokens, dim = sizes_.ffn;
    const double count = static_cast<double>(rows * dim);
    const std::string shape = joined({rows, dim});
    const auto launches = [&](const std::function<void(const Tensor&)>& quantize) {
      std::vector<Launch> all;
      for (size_t i = 0; i < num_copies(3 * count); ++i) {
        const Tensor x = normal({rows, dim});
        if (!ops::has_float8(x)) break;
        all.push_back([=] { quantize(x); });
      }
      return all;
    };
    row({"float8_of_tensor", "forward", shape}, {.bytes = 5 * count}, 0, [&] {
      return launches([](const Tensor& x) {
        ops::float8_of_tensor(x, at::kFloat8_e4m3fn, ops::Float8Scale::as_it_is);
      });
    });
    row({"float8_of_rows", "forward", shape}, {.bytes = 3 * count}, 0, [&] {
      return launches([](const Tensor& x) { ops::float8_of_rows(x, ops::Float8Scale::as_it_is); });
    });
    row({"float8_of_rows", "of the transpose", shape}, {.bytes = 3 * count}, 0, [&] {
      return launches(
          [](const Tensor& x) { ops::float8_of_rows(x.t(), ops::Float8Scale::as_it_is); });
    });
  }

  /// The products of a linear layer with what quantises their operands.
  void measure_float8_layers() {
    if (!float8::multiplies_float8(device_.device())) return;
    for (const char* name : {"tensorwise", "rowwise", "rowwise_with_gw_hp"}) {
      const float8::Recipe recipe = float8::find_recipe(name);
      for (const Product& p : layer_products()) {
        nn::Linear linear(p.in, p.out, nn::WeightLayout::replicated, nn::Init::normal(0, 1));
        linear.set_names("layer");
        linear.weight().allocate(device_.device(), at::kBFloat16);
        const auto scales = std::make_shared<float8::WeightScales>(dist::Mesh(), device_.device(),
                                                                   at::kBFloat16, recipe.rounding);
        const at::NoGradGuard no_grad;
        const Tensor weight = linear.weight().value();
        weight.copy_(normal({p.out, p.in}, at::kBFloat16, 0.02));
        const float8::Float8Products products(recipe, scales->add(linear.weight()),
                                              float8::Arithmetic::by_device);
        const double flops = 2.0 * static_cast<double>(p.rows * p.in) * static_cast<double>(p.out);
        const Tensor x = normal({p.rows, p.in}), grad = normal({p.rows, p.out});
        const std::string operation = std::string("float8_linear ") + name;
        const std::string shape = joined({p.rows, p.in, p.out});
        const auto time = [&](const char* product, const Launch& launch) {
          row({operation, std::string(p.layer) + ", " + product, shape}, {.flops = flops},
              float8_peak_, [&] { return std::vector<Launch>{launch}; });
        };
        time("forward", [&] { products.output(x, weight, {}); });
        time("dx", [&] { products.grad_input(grad, weight); });
        time("dweight", [&] { products.grad_weight(grad, x); });
      }
    }
  }

  Device& device_;
  Options options_;
  bool is_small_;
  Sizes sizes_;
  Stopwatch watch_;
  double bandwidth_ = 0, bf16_peak_ = 0, float8_peak_ = 0;
  bool is_ok_ = true;
};

}  // namespace

bool measure_speed(Device& device, const Options& options) {
  at::manual_seed(3);
  return Speed(device, options).run();
}

}  // namespace titan::probe
