// Peaks of the device, and layers that compute in float8.
#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <titan/nn/linear.h>
#include <titan/ops/quantize.h>

#include "inputs.h"
#include "plugins/converters/float8/hardware.h"
#include "plugins/converters/float8/products.h"
#include "speed.h"

namespace titan::probe {

void Speed::measure_copies() {
  const int64_t size = sizes_.copied;
  const auto timing = row({"copy", "forward", std::to_string(size >> 20) + " MiB", at::kByte},
                          {.bytes = 2.0 * static_cast<double>(size)}, 0, [&] {
                            const Tensor from = integers(255, {size / 8}).view(at::kByte);
                            const Tensor to = at::empty_like(from);
                            return std::vector<Launch>{[=] { to.copy_(from); }};
                          });
  if (timing) bandwidth_ = 2.0 * static_cast<double>(size) / timing->median;
}

std::vector<Speed::Product> Speed::layer_products() const {
  const auto& s = sizes_;
  return {{"qkv", s.tokens, s.dim, (s.heads + 2 * s.kv_heads) * s.width},
          {"attention out", s.tokens, s.heads * s.width, s.dim},
          {"gate and up", s.tokens, s.dim, 2 * s.ffn},
          {"down", s.tokens, s.ffn, s.dim}};
}

void Speed::measure_product(const std::string& what, int64_t m, int64_t k, int64_t n,
                            bool left_turned, bool right_turned) {
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

void Speed::measure_products() {
  measure_product("square", sizes_.gemm, sizes_.gemm, sizes_.gemm, false, true);
  for (const Product& p : layer_products()) {
    const std::string layer = p.layer;
    measure_product(layer + ", forward", p.rows, p.in, p.out, false, true);
    measure_product(layer + ", dx", p.rows, p.out, p.in, false, false);
    measure_product(layer + ", dweight", p.out, p.rows, p.in, true, false);
  }
}

void Speed::measure_float8_product(const std::string& what, int64_t m, int64_t k, int64_t n,
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
              launches.push_back(
                  [=] { at::_scaled_mm(a, b, a_scale, b_scale, {}, {}, at::kBFloat16, is_fast); });
            }
            return launches;
          });
  if (timing) float8_peak_ = std::max(float8_peak_, work.flops / timing->median);
}

void Speed::measure_float8_products() {
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
      measure_float8_product(std::string(p.layer) + ", dweight", p.out, p.rows, p.in, false, false);
    }
}

void Speed::measure_quantization() {
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

void Speed::measure_float8_layers() {
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

}  // namespace titan::probe
