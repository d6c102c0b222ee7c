// Helpers for the autograd Functions of this folder.
#pragma once

#include <initializer_list>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <torch/csrc/autograd/custom_function.h>

namespace titan::ops {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// While alive, operations call the device's kernels directly: no graph, no view tracking.
using BelowAutograd = at::AutoDispatchBelowADInplaceOrView;

/// Whether a graph has to be recorded for an operation on these inputs.
inline bool records_graph(std::initializer_list<const at::Tensor*> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor* input : inputs) {
    if (input->requires_grad()) return true;
  }
  return false;
}

/// First line of each backward: a second derivative would silently omit these operations.
inline void check_differentiated_once(const char* operation) {
  TITAN_CHECK(!at::GradMode::is_enabled(), config, "titan::", operation,
              " cannot be differentiated twice: call backward without create_graph");
}

/// The dispatcher's handle of titan::`name`; callers keep it in a static.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace titan::ops
