// Mode `float8`: products of the device's matrix units against their definition (dequantised,
// summed in fp32), on the device and on the CPU; and quantised values bitwise equal to the CPU's.
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <titan/error.h>
#include <titan/nn/grouped_linear.h>
#include <titan/nn/linear.h>

#include "numbers.h"
#include "plugins/converters/common/quantized_grouped.h"
#include "plugins/converters/float8/hardware.h"
#include "plugins/converters/float8/products.h"
#include "plugins/converters/float8/round_trip.h"
#include "plugins/converters/mx/grouped_converter.h"
#include "probe.h"

namespace titan::probe {
namespace {

/// Each side rounds results in bf16 once. The output uses fast accumulation, in which Hopper's
/// matrix units keep 14 bits; gradients use full precision.
constexpr double kLimit = 5e-3, kFastLimit = 2e-2;
/// For the same definition on two devices: the order of fp32 sums, and one rounding.
double definition_limit(at::ScalarType type) {
  return type == at::kFloat ? 1e-5 : 4e-3;
}

struct Shape {
  int64_t rows, in, out;
  bool is_large = false;

  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(in) + " x " + std::to_string(out);
  }
};
constexpr Shape kShapes[] = {{32, 64, 96}, {7, 48, 80}, {257, 192, 400}, {2048, 4096, 14336, true}};

/// Values whose rows and columns differ by orders of magnitude.
Tensor numbers(at::IntArrayRef shape, at::ScalarType type, at::Device device, double size) {
  const auto options = at::TensorOptions().device(device).dtype(at::kFloat);
  const Tensor rows = at::randn({shape[shape.size() - 2], 1}, options).exp_();
  const Tensor columns = at::randn({1, shape.back()}, options).exp_();
  return at::randn(shape, options).mul_(rows).mul_(columns).mul_(size).to(type);
}

struct Operands {
  Tensor x, weight, grad;

  Operands(const Shape& s, at::ScalarType type, at::Device device)
      : x(numbers({s.rows, s.in}, type, device, 1)),
        weight(numbers({s.out, s.in}, type, device, 0.02)),
        grad(numbers({s.rows, s.out}, type, device, 1e-4)) {}
  Operands to(at::Device device) const {
    Operands there = *this;
    there.x = x.to(device);
    there.weight = weight.to(device);
    there.grad = grad.to(device);
    return there;
  }
};

struct Float8Results {
  Tensor y, dx, dweight;
};

/// The three products of one layer. The whole weight gives its scale.
Float8Results multiply(
    const Operands& o,
    const std::function<std::shared_ptr<quantized::Products>(nn::Parameter&)>& products_of) {
  const at::NoGradGuard no_grad;
  nn::Linear linear(o.weight.size(1), o.weight.size(0), nn::WeightLayout::replicated,
                    nn::Init::normal(0, 1));
  linear.set_names("layer");
  linear.weight().allocate(o.weight.device(), o.weight.scalar_type());
  Tensor(linear.weight().value()).copy_(o.weight);
  const auto products = products_of(linear.weight());
  return {products->output(o.x, o.weight, {}), products->grad_input(o.grad, o.weight),
          products->grad_weight(o.grad, o.x)};
}

Float8Results multiply_float8(const Operands& o, const float8::Recipe& recipe,
                              float8::Arithmetic arithmetic) {
  return multiply(o, [&](nn::Parameter& weight) {
    const auto scales = std::make_shared<float8::WeightScales>(
        dist::Mesh(), o.weight.device(), o.weight.scalar_type(), recipe.rounding);
    return std::make_shared<float8::Float8Products>(recipe, scales->add(weight), arithmetic);
  });
}

Float8Results multiply_mx(const Operands& o, const mx::Recipe& recipe) {
  return multiply(o, [&](nn::Parameter&) { return std::make_shared<mx::MxProducts>(recipe); });
}

/// x (N, in), weight (G, out, in), grad (N, out) by experts.
Float8Results multiply_grouped(const Operands& o, at::IntArrayRef rows,
                               const std::shared_ptr<quantized::Products>& products) {
  nn::GroupedLinear layer(o.weight.size(0), o.weight.size(2), o.weight.size(1),
                          nn::Init::normal(0, 1));
  layer.set_names("experts");
  layer.weight().allocate(o.weight.device(), o.weight.scalar_type());
  {
    const at::NoGradGuard no_grad;
    Tensor(layer.weight().value()).copy_(o.weight);
  }
  layer.set_kernel("probe", std::make_unique<quantized::QuantizedGroupedKernel>(products));
  const Tensor x = o.x.detach().clone().requires_grad_(true);
  const Tensor y = layer(x, rows);
  y.backward(o.grad);
  return {y.detach(), x.grad(), layer.weight().grad()};
}

/// `output_limit`: the limit of y; 0: `limit`.
Value judged(const Float8Results& own, const Float8Results& other, double limit_of_gradients,
             double output_limit = 0) {
  bool is_ok = true;
  Value::List outputs;
  const auto add = [&](const char* name, const Tensor& a, const Tensor& b, double limit) {
    const double error = relative_error(a, b);
    is_ok = is_ok && error <= limit;
    Value output = Value::map({{"name", name}, {"error", error}, {"limit", limit}});
    if (!std::isfinite(error)) output["error"] = "not a number";
    outputs.push_back(std::move(output));
  };
  add("y", own.y, other.y, output_limit > 0 ? output_limit : limit_of_gradients);
  add("dx", own.dx, other.dx, limit_of_gradients);
  add("dweight", own.dweight, other.dweight, limit_of_gradients);
  return Value::map({{"outputs", std::move(outputs)}, {"ok", is_ok}});
}

/// Number of bytes that differ between quantised values of two devices.
Value judged_bits(std::initializer_list<std::pair<const char*, std::pair<Tensor, Tensor>>> pairs) {
  bool is_ok = true;
  Value::List outputs;
  for (const auto& [name, both] : pairs) {
    const double error = share_of_unequal_bytes(both.first, both.second);
    is_ok = is_ok && error == 0;
    outputs.push_back(Value::map({{"name", name}, {"error", error}, {"limit", 0.0}}));
  }
  return Value::map({{"outputs", std::move(outputs)}, {"ok", is_ok}});
}

class Float8Check {
 public:
  Float8Check(Device& device, const Options& options)
      : device_(device),
        options_(options),
        multiplies_(float8::multiplies_float8(device.device())) {}

  bool run() {
    for (const Shape& s : kShapes) {
      if (s.is_large && (options_.is_small || device_.device().is_cpu())) continue;
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        at::manual_seed(static_cast<uint64_t>(s.rows));
        const at::Device host(c10::kCPU);
        const Operands made(s, type, s.is_large ? device_.device() : host);
        const Operands operands = made.to(device_.device());
        for (const char* recipe : {"tensorwise", "rowwise", "rowwise_with_gw_hp"})
          check_recipe(s, type, recipe, operands);
        check_mx(s, type, operands);
      }
    }
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) check_grouped(type);
    check_refusal();
    return is_ok_;
  }

 private:
  void row(const char* operation, const std::string& shape, at::ScalarType type,
           const std::string& recipe, const std::string& compared,
           const std::function<Value()>& f) {
    const std::string name = std::string(operation) + " " + recipe;
    if (name.find(options_.only) == std::string::npos) return;
    const Value head = Value::map({{"operation", operation},
                                   {"recipe", recipe},
                                   {"shape", shape},
                                   {"dtype", std::string(c10::toString(type))},
                                   {"compared", compared}});
    is_ok_ = print_row(device_, head, f) && is_ok_;
  }

  void check_recipe(const Shape& s, at::ScalarType type, const char* name, const Operands& o) {
    const float8::Recipe recipe = float8::find_recipe(name);
    const auto emulated = [&] {
      return multiply_float8(o, recipe, float8::Arithmetic::by_definition);
    };
    if (multiplies_)
      row("float8_linear", s.text(), type, name, "matrix units with the definition", [&] {
        return judged(multiply_float8(o, recipe, float8::Arithmetic::by_device), emulated(), kLimit,
                      kFastLimit);
      });
    if (s.is_large) return;
    row("float8_linear", s.text(), type, name, "the definition here with the CPU's", [&] {
      const Operands there = o.to(c10::kCPU);
      return judged(emulated(), multiply_float8(there, recipe, float8::Arithmetic::by_definition),
                    definition_limit(type));
    });
    row("float8_quantize", s.text(), type, name, "bits here with the CPU's", [&] {
      const Operands there = o.to(c10::kCPU);
      const auto quantized = [&](const Tensor& x) {
        const bool by_row = recipe.output.operands->left.granularity == float8::Granularity::row;
        const Tensor maximum =
            by_row ? float8::largest_along(x, 1) : quantized::largest_magnitude(x);
        const Tensor scale = float8::scale_of(maximum, at::kFloat8_e4m3fn, recipe.rounding);
        return std::array{scale, float8::cast(x, scale, at::kFloat8_e4m3fn),
                          float8::round_trip(x, scale, at::kFloat8_e4m3fn)};
      };
      const auto here = quantized(o.x), cpu = quantized(there.x);
      return judged_bits({{"scale", {here[0], cpu[0]}},
                          {"values", {here[1], cpu[1]}},
                          {"round_trip", {here[2], cpu[2]}}});
    });
  }

  void check_mx(const Shape& s, at::ScalarType type, const Operands& o) {
    for (const char* name : {"mxfp8_emulated", "mxfp8_emulated_rceil"}) {
      const mx::Recipe recipe = mx::find_recipe(name);
      if (!s.is_large) {
        row("mxfp8_quantize", s.text(), type, name, "bits here with the CPU's", [&] {
          const Tensor there = o.x.cpu();
          const mx::Blocks here = mx::quantize(o.x, recipe.rounding),
                           cpu = mx::quantize(there, recipe.rounding);
          return judged_bits(
              {{"scales", {here.scales, cpu.scales}},
               {"values", {here.values, cpu.values}},
               {"round_trip",
                {mx::round_trip(o.x, recipe.rounding), mx::round_trip(there, recipe.rounding)}}});
        });
        row("mxfp8_linear", s.text(), type, name, "the emulation here with the CPU's", [&] {
          return judged(multiply_mx(o, recipe), multiply_mx(o.to(c10::kCPU), recipe),
                        definition_limit(type));
        });
      }
      if (mx::multiplies_mxfp8(device_.device()))
        row("mxfp8_linear", s.text(), type, name, "matrix units with the emulation", [&] {
          return judged(multiply_mx(o, {recipe.rounding, false}), multiply_mx(o, recipe), kLimit);
        });
    }
  }

  void check_grouped(at::ScalarType type) {
    const std::vector<int64_t> rows = {48, 0, 17, 63};
    at::manual_seed(11);
    Operands made(Shape{128, 64, 96}, type, c10::kCPU);
    made.weight = numbers({4, 96, 64}, type, c10::kCPU, 0.02);
    const Operands o = made.to(device_.device());
    const auto products = [](float8::Arithmetic arithmetic) {
      return std::make_shared<float8::Float8Products>(float8::find_recipe("rowwise"), nullptr,
                                                      arithmetic);
    };
    const auto emulated = [&](const Operands& of) {
      return multiply_grouped(of, rows, products(float8::Arithmetic::by_definition));
    };
    const std::string shape = "128 x 64 x 96, 4 groups, an empty one among them";
    if (multiplies_)
      row("float8_grouped", shape, type, "rowwise", "matrix units with the definition", [&] {
        return judged(multiply_grouped(o, rows, products(float8::Arithmetic::by_device)),
                      emulated(o), kLimit, kFastLimit);
      });
    row("float8_grouped", shape, type, "rowwise", "the definition here with the CPU's",
        [&] { return judged(emulated(o), emulated(made), definition_limit(type)); });
    row("mxfp8_grouped", shape, type, "mxfp8_emulated", "the emulation here with the CPU's", [&] {
      const auto mx = std::make_shared<mx::MxProducts>(mx::find_grouped_recipe("mxfp8_emulated"));
      return judged(multiply_grouped(o, rows, mx), multiply_grouped(made, rows, mx),
                    definition_limit(type));
    });
  }

  /// Without matrix units for MXFP8, the recipe that needs them says which setting to use.
  void check_refusal() {
    if (mx::multiplies_mxfp8(device_.device())) return;
    row("mxfp8_refusal", "", at::kBFloat16, "mxfp8_cublas", "the error with its documentation",
        [&] {
          std::string message;
          try {
            mx::check_multiplies(mx::find_recipe("mxfp8_cublas"), device_,
                                 {.converter = "quantize.linear.mx", .recipe = "mxfp8_emulated"});
          } catch (const Error& error) {
            message = error.what();
          }
          const bool is_documented =
              message.find("compute capability 10") != std::string::npos &&
              message.find("quantize.linear.mx.recipe_name = \"mxfp8_emulated\"") !=
                  std::string::npos;
          return Value::map({{"message", message}, {"ok", is_documented}});
        });
  }

  Device& device_;
  Options options_;
  bool multiplies_;
  bool is_ok_ = true;
};

}  // namespace

bool check_float8(Device& device, const Options& options) {
  return Float8Check(device, options).run();
}

}  // namespace titan::probe
