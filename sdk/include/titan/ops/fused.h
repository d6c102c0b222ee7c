// Operations that do the work of several in one pass over memory. Used by what compiles a model
// (titan/compile_backend.h). Those that write in place record no graph and change no version
// counters: they are for the inside of a torch::autograd::Function, on tensors of its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

TITAN_OPTIONAL_HEADER(ops_fused);

namespace titan::ops {

struct AddedNorm {
  at::Tensor sum;         ///< x + delta
  at::Tensor normalized;  ///< rms_norm(sum, weight, eps)
};

/// x + delta and its root mean square normalisation; the backward adds the gradient of the sum into
/// that of the normalisation. The same bits as the two operations one after the other.
///
/// x and delta (..., dim) of one shape and dtype, weight (dim). Differentiable once in all three;
/// the sum, the weight and one number per row are kept. Throws config Error on shapes that do not
/// fit.
TITAN_API AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& delta,
                                 const at::Tensor& weight, double eps);

/// Backward of swiglu where it stands: with the gradient of the product in `dout`, `gate` and `up`
/// become their gradients and `dout` becomes the product itself, silu(gate) ⊙ up, the same bits as
/// swiglu's. All contiguous, of one shape and dtype.
TITAN_API void swiglu_backward_in_place(const at::Tensor& dout, const at::Tensor& gate,
                                        const at::Tensor& up);

/// As the forward of rope (or by the negative angles), into `q_out` and `k_out`, which have the
/// shapes of q and k and contiguous heads (B, S, n, hd); each may be its input. `positions` (B, S),
/// or undefined. Arguments are those that rope has checked, or fit like them.
TITAN_API void rope_into(const at::Tensor& q, const at::Tensor& k, const at::Tensor& cos,
                         const at::Tensor& sin, const at::Tensor& positions, bool inverse,
                         const at::Tensor& q_out, const at::Tensor& k_out);

}  // namespace titan::ops
