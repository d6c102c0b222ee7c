// What happens to the tensors that autograd keeps for the backward: recomputation drops them,
// offload moves them away. Used by activation checkpointing.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::nn {

/// Stands for one kept tensor until the backward asks for it.
class TITAN_API SavedTensor {
 public:
  virtual ~SavedTensor();
  /// [the thread that runs backward] The tensor: of the same shape, dtype, device and values.
  /// Called again only where a graph is walked twice.
  virtual at::Tensor unpack() = 0;
};

/// Takes every tensor that autograd saves while a SavedTensorScope with it lives.
class TITAN_API SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks();
  /// [the thread that runs forward] `tensor` has no history and shares its memory with what is
  /// saved. An exception leaves the operation that saves.
  virtual std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) = 0;
};

/// While alive, what autograd saves on this thread goes through `hooks`; the innermost scope alone
/// counts. Null: autograd keeps its tensors itself.
class TITAN_API SavedTensorScope {
 public:
  explicit SavedTensorScope(SavedTensorHooks* hooks);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;

 private:
  SavedTensorHooks* before_;
};

/// The plainest SavedTensor: holds it.
class TITAN_API HeldTensor final : public SavedTensor {
 public:
  explicit HeldTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

}  // namespace titan::nn
