// Helpers of the tests of titan/ops: random inputs, gradients, and comparison with composed ATen
// operations.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace titan::ops::testing {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// Seeded again in each test, so that a test sees the same numbers when it runs alone.
at::Generator& generator();

/// Normally distributed numbers.
Tensor random(at::IntArrayRef shape, at::ScalarType type = at::kDouble);

/// Integers from 0 to `limit` - 1.
Tensor random_ids(int64_t limit, at::IntArrayRef shape);

/// Copies of the same layout in `type`. Floating-point copies are leaves that require a gradient.
Tensors leaves(const Tensors& inputs, at::ScalarType type);

/// The tensors that require a gradient.
Tensors differentiable(const Tensors& inputs);

/// Outputs, then the gradients of Σ output · direction for every floating-point input.
Tensors outputs_and_gradients(const Function& f, const Tensors& inputs, const Tensors& directions);

/// One random tensor for each output.
Tensors directions_for(const Function& f, const Tensors& inputs);

/// The largest difference.
double max_error(const Tensor& value, const Tensor& exact);

struct Slack {
  double factor = 2;     ///< times the error of the composition
  double roundings = 1;  ///< times the rounding of the largest value
  double absolute = 0;
};

/// In `type`, `f` must be as exact as the composition `reference` in the same type. Outputs and
/// gradients, compared with the composition in double, may have the composition's error times the
/// slack's factor plus the rest of the slack.
void expect_as_exact_as(const Function& reference, const Function& f, const Tensors& inputs,
                        at::ScalarType type = at::kFloat, const Slack& slack = {});

/// Gradients of `f` in double against central differences, every element of every input.
void expect_gradients_by_differences(const Function& f, const Tensors& inputs);

/// Outputs and gradients must be bitwise the same with 1, 2 and 3 threads.
void expect_same_for_any_number_of_threads(const Function& f, const Tensors& inputs);

/// Meta inputs must give outputs and gradients of the same shapes, strides and dtypes as real ones.
void expect_meta_like_real(const Function& f, const Tensors& inputs,
                           at::ScalarType type = at::kFloat);

/// The rules of autograd graphs: no graph without need, first derivatives only, changes of saved
/// inputs are detected. `changed`: an input whose values the backward needs.
void expect_graph_rules(const Function& f, const Tensors& inputs, size_t changed);

}  // namespace titan::ops::testing
