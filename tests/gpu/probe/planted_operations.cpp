// Operations with one defect each. A test checks that the report shows them.
#include <memory>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <titan/error.h>

#include "operations.h"

namespace titan::probe {

void add_planted_cases(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const std::function<Tensor(const Tensor&)>& run) {
    cases.push_back({.operation = name,
                     .shape = "257 x 192",
                     .types = {at::kFloat, at::kBFloat16},
                     .limits = {.fp32 = 1e-5, .bf16 = 4e-3, .fp16 = 6e-4},
                     .inputs =
                         [](at::Device device) {
                           const auto options = at::TensorOptions().device(device);
                           return std::vector<Input>{{"x", at::randn({257, 192}, options)}};
                         },
                     .run =
                         [run](const std::vector<Input>& in) {
                           return Results{{"y", run(in[0].values)}};
                         },
                     .reference =
                         [](const std::vector<Input>& in) {
                           return Results{{"y", in[0].values}};
                         }});
  };
  add("planted_unwritten", [](const Tensor& x) {
    const Tensor y = at::empty_like(x);
    y.narrow(0, 0, 256).copy_(x.narrow(0, 0, 256));
    return y;
  });
  add("planted_error", [](const Tensor& x) { return x * 1.01; });
  const auto runs = std::make_shared<int>(0);
  add("planted_variation", [runs](const Tensor& x) {
    const Tensor y = x.clone();
    // less than the limit of bf16
    y[11][7].add_(++*runs % 3, 0.01);
    return y;
  });
  add("planted_exception", [](const Tensor& x) -> Tensor {
    TITAN_CHECK(false, internal, "this operation always fails");
  });
}

}  // namespace titan::probe
