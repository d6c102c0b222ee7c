// Quantises and multiplies matrices for tests/referee/float8_referee.py.
//
//   float8_probe <folder>
//
// <folder>/cases.txt has a line for each case: NAME OPERATION DTYPE ROWS IN [OUT]. Tensors are raw
// little-endian files <folder>/NAME.<tensor>. DTYPE (float32, bfloat16) is that of unquantised
// ones.
//   tensor_e4m3, tensor_e5m2, row_e4m3, column_e4m3
//       x (rows, in) -> scale, values; the suffix "_power" rounds scales down to powers of two
//   floor, rceil
//       x (rows, in) -> scales, values, wide, tiles
//   tensorwise, rowwise, rowwise_with_gw_hp, mxfp8_emulated, mxfp8_emulated_rceil
//       x, weight, grad -> y, grad_x, grad_weight
//   experts_float8, experts_mx
//       the same for experts, weight (G, out, in); the rows of each expert follow OUT
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>

#include "plugins/converters/common/quantized_grouped.h"
#include "plugins/converters/float8/products.h"
#include "plugins/converters/mx/grouped_converter.h"
#include "tests/tools/probe_files.h"

namespace {

namespace fs = std::filesystem;
using at::Tensor;
using namespace titan;

struct Case {
  fs::path folder;
  std::string name, operation, dtype;
  int64_t rows = 0, in = 0, out = 0;
  std::vector<int64_t> of_experts;  // rows of each expert

  at::ScalarType wide() const { return dtype == "bfloat16" ? at::kBFloat16 : at::kFloat; }

  fs::path path(const std::string& what) const { return folder / (name + "." + what); }
  Tensor read(const std::string& what, at::IntArrayRef shape) const {
    return probe::read_tensor(path(what), shape, wide());
  }
  void write(const std::string& what, const Tensor& tensor) const {
    probe::write_tensor(path(what), tensor);
  }
};

void quantize_float8(const Case& c) {
  const Tensor x = c.read("x", {c.rows, c.in});
  const bool is_power = c.operation.ends_with("_power");
  const at::ScalarType format =
      c.operation.find("e5m2") != std::string::npos ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
  const Tensor maximum = c.operation.starts_with("tensor_") ? quantized::largest_magnitude(x)
                         : c.operation.starts_with("row_")  ? float8::largest_along(x, 1)
                                                            : float8::largest_along(x, 0);
  const Tensor scale = float8::scale_of(
      maximum, format,
      is_power ? float8::ScaleRounding::down_to_power_of_two : float8::ScaleRounding::none);
  c.write("scale", scale);
  c.write("values", float8::cast(x, scale, format));
}

void quantize_mx(const Case& c) {
  const mx::Blocks blocks =
      mx::quantize(c.read("x", {c.rows, c.in}),
                   c.operation == "floor" ? mx::Rounding::floor : mx::Rounding::rceil);
  c.write("scales", blocks.scales);
  c.write("values", blocks.values);
  c.write("wide", mx::dequantize(blocks, c.wide()));
  c.write("tiles", mx::in_tiles(blocks.scales));
}

void run_layer(const Case& c) {
  nn::Linear linear(c.in, c.out, nn::WeightLayout::replicated, nn::Init::normal(0, 1));
  linear.set_names("layer");
  linear.weight().allocate(c10::kCPU, c.wide());
  {
    const at::NoGradGuard no_grad;
    Tensor(linear.weight().value()).copy_(c.read("weight", {c.out, c.in}));
  }
  std::shared_ptr<const quantized::Products> products;
  if (c.operation.starts_with("mx")) {
    products = std::make_shared<mx::MxProducts>(mx::find_recipe(c.operation));
  } else {
    const float8::Recipe recipe = float8::find_recipe(c.operation);
    const auto scales =
        std::make_shared<float8::WeightScales>(dist::Mesh(), c10::kCPU, c.wide(), recipe.rounding);
    products = std::make_shared<float8::Float8Products>(recipe, scales->add(linear.weight()),
                                                        float8::Arithmetic::by_definition);
  }
  linear.set_kernel("probe", std::make_unique<quantized::QuantizedKernel>(products));
  const Tensor x = c.read("x", {1, c.rows, c.in}).requires_grad_(true);
  const Tensor y = linear(x, Batch{});
  y.backward(c.read("grad", {1, c.rows, c.out}));
  c.write("y", y);
  c.write("grad_x", x.grad());
  c.write("grad_weight", linear.weight().grad());
}

void run_experts(const Case& c) {
  const auto num_experts = static_cast<int64_t>(c.of_experts.size());
  nn::GroupedLinear layer(num_experts, c.in, c.out, nn::Init::normal(0, 1));
  layer.set_names("experts");
  layer.weight().allocate(c10::kCPU, c.wide());
  {
    const at::NoGradGuard no_grad;
    Tensor(layer.weight().value()).copy_(c.read("weight", {num_experts, c.out, c.in}));
  }
  std::shared_ptr<const quantized::Products> products;
  if (c.operation == "experts_mx")
    products = std::make_shared<mx::MxProducts>(mx::find_grouped_recipe("mxfp8_emulated"));
  else
    products = std::make_shared<float8::Float8Products>(float8::find_recipe("rowwise"), nullptr,
                                                        float8::Arithmetic::by_definition);
  layer.set_kernel("probe", std::make_unique<quantized::QuantizedGroupedKernel>(products));
  const Tensor x = c.read("x", {c.rows, c.in}).requires_grad_(true);
  const Tensor y = layer(x, c.of_experts);
  y.backward(c.read("grad", {c.rows, c.out}));
  c.write("y", y);
  c.write("grad_x", x.grad());
  c.write("grad_weight", layer.weight().grad());
}

void run(const Case& c) {
  if (!c.of_experts.empty())
    run_experts(c);
  else if (c.out > 0)
    run_layer(c);
  else if (c.operation == "floor" || c.operation == "rceil")
    quantize_mx(c);
  else
    quantize_float8(c);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    TITAN_CHECK(argc == 2, config, "usage: float8_probe <folder>");
    std::ifstream lines(fs::path(argv[1]) / "cases.txt");
    std::string line;
    while (std::getline(lines, line)) {
      Case c{.folder = argv[1]};
      std::istringstream words(line);
      words >> c.name >> c.operation >> c.dtype >> c.rows >> c.in;
      TITAN_CHECK(words, data, "cannot read the case '", line, "'");
      words >> c.out;  // only for layers
      for (int64_t rows = 0; words >> rows;) c.of_experts.push_back(rows);
      run(c);
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "float8_probe: " << e.what() << '\n';
    return 1;
  }
}
