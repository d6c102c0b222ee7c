// The optimizer's step and float8: operations without a gradient, some of which are compared by
// bits.
#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <titan/error.h>
#include <titan/nn/rounding.h>
#include <titan/ops/adamw_step.h>
#include <titan/ops/quantize.h>

#include "inputs.h"
#include "operations.h"
#include "plugins/converters/common/quantized_linear.h"
#include "plugins/converters/float8/quantize.h"

namespace titan::probe {
namespace {

using Kind = Input::Kind;
using Inputs = std::vector<Input>;

constexpr ops::AdamWNumbers kStep{1e-2, 0.9, 0.95, 1e-8, 0.1};
constexpr int64_t kSteps = 7;
constexpr uint64_t kSeed = 5;
constexpr const char* kName = "layers.0.weight";

struct Updated {
  Tensor weight, exp_avg, exp_avg_sq;
};

/// Computes in double, without rounding.
Updated exact_step(const Inputs& in) {
  const auto wide = [](const Input& x) { return x.values.to(at::kDouble); };
  const Tensor w = wide(in[0]), g = wide(in[1]);
  const Tensor m = wide(in[2]).mul(kStep.beta1).add(g, 1 - kStep.beta1);
  const Tensor v = wide(in[3]).mul(kStep.beta2).add(g.square(), 1 - kStep.beta2);
  const double first = 1 - std::pow(kStep.beta1, kSteps),
               second = 1 - std::pow(kStep.beta2, kSteps);
  const Tensor denominator = v.div(second).sqrt().add(kStep.eps);
  return {w.mul(1 - kStep.lr * kStep.weight_decay).sub(m.div(first).div(denominator), kStep.lr), m,
          v};
}

/// One step on copies of the inputs; empty if the device does not support them.
std::optional<Updated> own_step(const Inputs& in,
                                const std::optional<ops::StochasticRounding>& rounding = {}) {
  const Updated own = {in[0].values.clone(), in[2].values.clone(), in[3].values.clone()};
  if (!ops::adamw_step(own.weight, in[1].values, own.exp_avg, own.exp_avg_sq, in[4].values, kStep,
                       rounding))
    return std::nullopt;
  return own;
}

Inputs step_inputs(at::IntArrayRef shape, const at::ScalarType (&types)[3], at::Device device) {
  const auto [w, g, s] = types;
  return {{"weight", normal(shape, device).to(w), Kind::as_it_is},
          {"gradient", normal(shape, device).to(g), Kind::as_it_is},
          {"exp_avg", normal(shape, device, 0.1).to(s), Kind::as_it_is},
          {"exp_avg_sq", normal(shape, device).square().mul_(0.01).to(s), Kind::as_it_is},
          {"step", at::full({}, kSteps, at::TensorOptions().device(device).dtype(at::kFloat)),
           Kind::as_it_is}};
}

std::string missing_step(const Inputs& in) {
  return own_step(in) ? "" : "the device has no operation titan::adamw_step_";
}

double limit_for(at::ScalarType type) {
  return type == at::kFloat ? 1e-6 : 3e-3;
}

void add_adamw(std::vector<Case>& cases) {
  const at::ScalarType kinds[][3] = {
      {at::kFloat, at::kFloat, at::kFloat},       {at::kFloat, at::kFloat, at::kBFloat16},
      {at::kBFloat16, at::kBFloat16, at::kFloat}, {at::kBFloat16, at::kBFloat16, at::kBFloat16},
      {at::kBFloat16, at::kFloat, at::kFloat},    {at::kBFloat16, at::kFloat, at::kBFloat16}};
  struct Shape {
    int64_t rows, columns;
    bool is_large;
  };
  for (const Shape s : {Shape{257, 193, false}, {4096, 14336, true}})
    for (const auto& kind : kinds) {
      const at::ScalarType w = kind[0], g = kind[1], state = kind[2];
      const auto inputs = [=](at::Device device) {
        return step_inputs({s.rows, s.columns}, {w, g, state}, device);
      };
      const std::string shape = joined({s.rows, s.columns});
      const std::string with =
          shape + ", gradient " + c10::toString(g) + ", states " + c10::toString(state);
      cases.push_back(
          {.operation = "adamw_step",
           .shape = with,
           .types = {w},
           .limits = {},
           .is_large = s.is_large,
           .inputs = inputs,
           .run =
               [=](const Inputs& in) {
                 const Updated own = own_step(in).value();
                 Results results = {{"weight", own.weight, false, limit_for(w)},
                                    {"exp_avg", own.exp_avg, false, limit_for(state)},
                                    {"exp_avg_sq", own.exp_avg_sq, false, limit_for(state)}};
                 if (w == at::kFloat)  // a weight of 1 would hide this
                   results.push_back({"update",
                                      own.weight.to(at::kDouble).sub(in[0].values.to(at::kDouble)),
                                      false, 1e-4});
                 return results;
               },
           .reference =
               [=](const Inputs& in) {
                 const Updated exact = exact_step(in);
                 Results results = {{"weight", exact.weight},
                                    {"exp_avg", exact.exp_avg},
                                    {"exp_avg_sq", exact.exp_avg_sq}};
                 if (w == at::kFloat)
                   results.push_back({"update", exact.weight.sub(in[0].values.to(at::kDouble))});
                 return results;
               },
           .missing = missing_step});
      if (w != at::kBFloat16 || s.is_large) continue;
      // the same random bits as the CPU's: a rounding may differ only where the update's last bit
      // in fp32 differs
      cases.push_back(
          {.operation = "adamw_step",
           .shape = with + ", stochastic rounding",
           .types = {w},
           .limits = {},
           .inputs = inputs,
           .run =
               [=](const Inputs& in) {
                 const std::vector<int64_t> whole = {s.rows, s.columns};
                 const nn::Slice slice{{0, 0}, whole};
                 const Updated own =
                     own_step(in, ops::StochasticRounding{kSeed, kName, whole, slice}).value();
                 return Results{{"weight", own.weight, false, 1.5e-4},
                                {"exp_avg", own.exp_avg, false, limit_for(state)}};
               },
           .reference =
               [=](const Inputs& in) {
                 const std::vector<int64_t> whole = {s.rows, s.columns};
                 const nn::Slice slice{{0, 0}, whole};
                 const Updated exact = exact_step(in);
                 const Tensor wide = exact.weight.to(at::kFloat).cpu().contiguous();
                 const Tensor rounded = at::empty(whole, at::kBFloat16);
                 nn::round_stochastically(rounded, wide, kSeed, kName, kSteps, whole, slice);
                 return Results{{"weight", rounded}, {"exp_avg", exact.exp_avg}};
               },
           .missing = missing_step});
    }
}

void add_float8(std::vector<Case>& cases) {
  struct Shape {
    int64_t rows, columns;
    bool is_large;
  };
  const auto missing = [](const Inputs& in) {
    return std::string(ops::has_float8(in[0].values) ? ""
                                                     : "the device has no operations for float8");
  };
  for (const Shape s : {Shape{257, 192, false}, {33, 77, false}, {2048, 4096, true}})
    for (const bool is_power : {false, true}) {
      const auto own =
          is_power ? ops::Float8Scale::down_to_power_of_two : ops::Float8Scale::as_it_is;
      const auto rounding =
          is_power ? float8::ScaleRounding::down_to_power_of_two : float8::ScaleRounding::none;
      const std::string shape =
          joined({s.rows, s.columns}) + (is_power ? ", scales are powers of 2" : "");
      const auto inputs = [s](at::Device device) {
        // rows and columns differ by orders of magnitude
        const Tensor x = normal({s.rows, s.columns}, device)
                             .mul_(normal({s.rows, 1}, device).exp_())
                             .mul_(normal({1, s.columns}, device).exp_());
        return Inputs{{"x", x, Kind::constant}};
      };
      // `run`: values and scale by the device; `largest`: the source of the scale
      const auto add = [&](const char* operation, const std::string& text, at::ScalarType format,
                           const std::function<ops::Float8(const Tensor&)>& run,
                           const std::function<Tensor(const Tensor&)>& largest) {
        const auto results = [](const Tensor& values, const Tensor& scale) {
          return Results{{"values", values, true}, {"scale", scale, true}};
        };
        cases.push_back({.operation = operation,
                         .shape = text,
                         .types = {at::kFloat, at::kBFloat16},
                         .limits = {},
                         .is_large = s.is_large,
                         .inputs = inputs,
                         .run =
                             [=](const Inputs& in) {
                               const ops::Float8 out = run(in[0].values);
                               return results(out.values, out.scale);
                             },
                         .reference =
                             [=](const Inputs& in) {
                               const Tensor x = in[0].values.cpu();
                               const Tensor scale = float8::scale_of(largest(x), format, rounding);
                               return results(float8::cast(x, scale, format), scale);
                             },
                         .missing = missing});
      };
      for (const at::ScalarType format : {at::kFloat8_e4m3fn, at::kFloat8_e5m2})
        add(
            "float8_of_tensor", shape + ", " + c10::toString(format), format,
            [=](const Tensor& x) { return ops::float8_of_tensor(x, format, own); },
            [](const Tensor& x) { return quantized::largest_magnitude(x); });
      add(
          "float8_of_rows", shape, at::kFloat8_e4m3fn,
          [=](const Tensor& x) { return ops::float8_of_rows(x, own); },
          [](const Tensor& x) { return float8::largest_along(x, 1); });
    }
}

}  // namespace

void add_step_cases(std::vector<Case>& cases) {
  add_adamw(cases);
  add_float8(cases);
}

}  // namespace titan::probe
