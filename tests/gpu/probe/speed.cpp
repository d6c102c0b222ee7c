#include "speed.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>

#include "inputs.h"
#include "numbers.h"

namespace titan::probe {
namespace {

constexpr Sizes kEightB = {4096, 4096, 14336, 32, 8, 128, 128256, 8192, int64_t{1} << 30, 8};
constexpr Sizes kSmall = {64, 64, 160, 4, 2, 16, 512, 128, int64_t{1} << 20, 4};

}  // namespace

Speed::Speed(Device& device, const Options& options)
    : device_(device),
      options_(options),
      is_small_(options.is_small || device.device().is_cpu()),
      sizes_(is_small_ ? kSmall : kEightB),
      watch_(device, is_small_) {}

bool Speed::run() {
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

Tensor Speed::normal(at::IntArrayRef shape, at::ScalarType type, double size) const {
  return probe::normal(shape, device_.device(), size).to(type);
}

Tensor Speed::integers(int64_t below, at::IntArrayRef shape) const {
  return probe::integers(below, shape, device_.device());
}

size_t Speed::num_copies(double bytes) const {
  if (is_small_) return 1;
  return static_cast<size_t>(std::clamp(std::ceil(256e6 / bytes), 1.0, 4.0));
}

std::optional<Timing> Speed::row(const Name& name, const Work& work, double peak,
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

void Speed::both(const std::string& operation, const std::string& shape, const Work& there,
                 const Work& back, size_t num_differentiable,
                 const std::function<Tensors()>& inputs, const Forward& forward) {
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
      for (const Tensor& output : graph.outputs) graph.directions.push_back(direction_like(output));
      launches.push_back([&] {
        torch::autograd::grad(graph.outputs, graph.differentiable, graph.directions,
                              /*retain_graph=*/true);
      });
    }
    return launches;
  });
}

bool measure_speed(Device& device, const Options& options) {
  at::manual_seed(3);
  return Speed(device, options).run();
}

}  // namespace titan::probe
