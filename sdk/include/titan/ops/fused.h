// Operations that fuse several in one pass over memory. Used by compile backends
// (titan/compile_backend.h). The in-place ones record no graph and change no version counters: use
// them inside a torch::autograd::Function, on its own tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

TITAN_OPTIONAL_HEADER(ops_fused);

namespace titan::ops {

struct AddedNorm {
  at::Tensor sum;         ///< x + delta
  at::Tensor normalized;  ///< rms_norm(sum, weight, eps)
};

/// x + delta and its root mean square normalisation. The backward adds the gradient of the sum to
/// that of the normalisation. Bitwise equal to the two separate operations.
///
/// x and delta (..., dim) of one shape and dtype, weight (dim). Differentiable once in all three;
/// saves the sum, the weight and one number per row. Throws a config Error for shapes that do not
/// match.
TITAN_API AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& delta,
                                 const at::Tensor& weight, double eps);

/// Backward of swiglu in place. `dout` holds the gradient of the product. `gate` and `up` become
/// their gradients, and `dout` becomes the product itself, silu(gate) ⊙ up, bitwise as swiglu
/// computes it. All contiguous, of one shape and dtype.
TITAN_API void swiglu_backward_in_place(const at::Tensor& dout, const at::Tensor& gate,
                                        const at::Tensor& up);

/// The forward of rope (with `inverse`, by the negative angles), into `q_out` and `k_out`, which
/// have the shapes of q and k and contiguous heads (B, S, n, hd); each may be its input.
/// `positions` (B, S), or undefined. The arguments must satisfy the checks of rope.
TITAN_API void rope_into(const at::Tensor& q, const at::Tensor& k, const at::Tensor& cos,
                         const at::Tensor& sin, const at::Tensor& positions, bool inverse,
                         const at::Tensor& q_out, const at::Tensor& k_out);

}  // namespace titan::ops
