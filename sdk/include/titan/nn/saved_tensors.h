// Intercepts the tensors that autograd saves for the backward: recomputation drops them, offload
// moves them to other memory. Used by activation checkpointing.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::nn {

/// Replaces one saved tensor until the backward needs it.
class TITAN_API SavedTensor {
 public:
  virtual ~SavedTensor();
  /// [the thread that runs backward] Returns the tensor, with the same shape, dtype, device and
  /// values. Called again only if a graph is traversed twice.
  virtual at::Tensor unpack() = 0;
};

/// Receives every tensor that autograd saves while a SavedTensorScope with these hooks is alive.
class TITAN_API SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks();
  /// [the thread that runs forward] `tensor` has no autograd history and shares memory with the
  /// saved tensor. An exception propagates out of the operation that saves the tensor.
  virtual std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) = 0;
};

/// While alive, tensors that autograd saves on this thread go through `hooks`. Scopes nest; only
/// the innermost counts. Null: autograd saves tensors as usual.
class TITAN_API SavedTensorScope {
 public:
  explicit SavedTensorScope(SavedTensorHooks* hooks);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;

 private:
  SavedTensorHooks* before_;
};

/// The simplest SavedTensor: keeps the tensor.
class TITAN_API HeldTensor final : public SavedTensor {
 public:
  explicit HeldTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

}  // namespace titan::nn
