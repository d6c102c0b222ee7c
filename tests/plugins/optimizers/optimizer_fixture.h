// Parameters with given values, and optimizers created through the registry. Used by the tests of
// the optimizers.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/optimizer.h>

#include "tests/plugins/registry.h"

namespace titan::testing {

/// One dimension, on the CPU, in fp32.
std::unique_ptr<Parameter> parameter(std::string name, const std::vector<float>& values);

void set_gradient(Parameter& p, const std::vector<float>& values);

std::vector<float> values_of(const at::Tensor& tensor);
std::vector<float> values_of(const Parameter& p);

std::unique_ptr<Optimizer> optimizer(std::string_view name,
                                     std::initializer_list<Value::Member> options,
                                     std::vector<Parameter*> parameters);

/// Copies of all state tensors by "parameter/name".
std::map<std::string, at::Tensor> state_of(Optimizer& optimizer);

void set_state(Optimizer& optimizer, const std::map<std::string, at::Tensor>& state);

/// Runs `count` steps on made-up gradients, starting with step `first`.
void take_steps(Optimizer& optimizer, const std::vector<Parameter*>& parameters, int first,
                int count);

/// Whether six steps end bitwise like three steps, a new optimizer with the old one's state, and
/// three more steps.
bool resumes_exactly(std::string_view name, std::initializer_list<Value::Member> options);

}  // namespace titan::testing
