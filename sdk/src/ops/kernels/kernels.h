// The inner loops of the CPU operations, in fp32 on raw pointers, and the choice between their
// builds. Used by src/ops/cpu. Rows are contiguous; the callers loop over rows and threads.
#pragma once

#include <cstdint>

#include <titan/export.h>

namespace titan::ops {

struct RowStatistics {
  float max;      ///< largest element
  float sum_exp;  ///< Σ exp(element − max)
};

/// The rows of one head, fp32 or bf16: row i starts i * stride elements after data and holds the
/// head's elements.
struct HeadRows {
  const void* data;
  int64_t stride;
};

/// One query head and the key head it shares.
struct AttentionHead {
  HeadRows q, k, v;
  int64_t num_queries, num_keys, dim;
  float scale;  ///< > 0
  bool causal;  ///< needs num_queries = num_keys
};

/// Additional inputs of the backward pass of one query head.
struct AttentionUpstream {
  HeadRows dout, out;
  const float* logsumexp;
};

/// Attention for one dtype of the rows. Sums are in fp32.
struct AttentionKernels {
  /// Rows [first_query, first_query + num_queries) of one head: out and logsumexp of those rows. At
  /// most attention_query_block of them, from a multiple of it on.
  void (*forward)(const AttentionHead& head, int64_t first_query, int64_t num_queries, void* out,
                  int64_t out_stride, float* logsumexp, float* scratch);
  /// The contributions of those rows: dq of the rows, and dk and dv without the factor `scale` of
  /// dk, added to (attention_padded_keys, attention_padded_dim) sums. At most
  /// attention_backward_block rows, from a multiple of it on.
  void (*backward)(const AttentionHead& head, const AttentionUpstream& upstream,
                   int64_t first_query, int64_t num_queries, void* dq, int64_t dq_stride, float* dk,
                   float* dv, float* scratch);
  /// out (rows, dim) = factor · the sums of `backward`.
  void (*store)(const float* sums, int64_t rows, int64_t dim, float factor, void* out,
                int64_t out_stride);
};

/// Consecutive rows of a contiguous weight.
struct WeightRows {
  const void* data;
  int64_t rows, cols;
};

/// One build of all inner loops.
struct Kernels {
  /// out = exp(x), within 2 ulp over the whole range of floats.
  void (*exp)(const float* x, float* out, int64_t n);

  /// y = x · rstd · weight for one row; returns rstd = 1 / sqrt(mean(x²) + eps).
  float (*rms_norm_forward)(const float* x, const float* weight, float* y, int64_t dim, float eps);
  /// dx of one row; adds the row's share to dweight.
  void (*rms_norm_backward)(const float* dy, const float* x, const float* weight, float rstd,
                            float* dx, float* dweight, int64_t dim);

  /// out = silu(gate) · up.
  void (*swiglu_forward)(const float* gate, const float* up, float* out, int64_t n);
  void (*swiglu_backward)(const float* dout, const float* gate, const float* up, float* dgate,
                          float* dup, int64_t n);

  /// One position: `heads` rows of 2·half elements, `stride` apart in x, contiguous in out.
  /// (a, b) -> (a·cos − sign·b·sin, b·cos + sign·a·sin).
  void (*rope)(const float* x, int64_t stride, const float* cos, const float* sin, float sign,
               float* out, int64_t heads, int64_t half);

  /// Statistics of one row of logits.
  RowStatistics (*softmax_statistics)(const float* logits, int64_t n);
  /// The same; leaves softmax(logits) in place of the logits.
  RowStatistics (*softmax_in_place)(float* logits, int64_t n);

  /// sum += row.
  void (*add)(float* sum, const float* row, int64_t n);

  /// out[m · out_stride + r] = row r of the weight · row m of x, for `count` contiguous rows of x.
  void (*few_rows)(WeightRows weight, const float* x, int64_t count, float* out,
                   int64_t out_stride);
  /// The same for a weight in bf16 with an even number of columns; each row of x has its elements
  /// of even index first, then those of odd index.
  void (*few_rows_bf16)(WeightRows weight, const float* x, int64_t count, float* out,
                        int64_t out_stride);

  /// Columns and rows of the sums that attention's backward pass adds to.
  int64_t (*attention_padded_dim)(int64_t dim);
  int64_t (*attention_padded_keys)(int64_t num_keys);
  int64_t attention_query_block, attention_backward_block;
  /// Floats of scratch memory that a call for attention needs.
  int64_t (*attention_scratch)(int64_t dim);
  /// The single query of a head, in fp32, to all keys.
  void (*attention_one_query)(const AttentionHead& head, float* out, float* logsumexp,
                              float* scratch);
  /// For rows in fp32, and for rows in bf16 with an even dim.
  AttentionKernels attention, attention_bf16;

  /// out = a + b.
  void (*sum)(const float* a, const float* b, float* out, int64_t n);
  /// swiglu_backward into `gate` and `up`; leaves the result of swiglu_forward in `dout`.
  void (*swiglu_backward_in_place)(float* dout, float* gate, float* up, int64_t n);
  /// bf16, given as its bits, to fp32 and back: to the nearest, ties to even, every NaN to one NaN.
  void (*widen_bf16)(const uint16_t* x, float* out, int64_t n);
  void (*narrow_bf16)(const float* x, uint16_t* out, int64_t n);
};

/// The build for the current CPU, chosen at the first call. Exported for the tests.
TITAN_API const Kernels& kernels();

/// For any CPU of the architecture.
TITAN_API const Kernels& baseline_kernels();
/// For x86 with AVX2 and FMA; null when this binary has no such build or the CPU lacks them.
TITAN_API const Kernels* avx2_kernels();
/// For x86 with AVX-512 (F, BW, DQ, VL); null likewise.
TITAN_API const Kernels* avx512_kernels();
/// For x86 with AVX-512 and its products of bf16; null likewise.
TITAN_API const Kernels* avx512_bf16_kernels();
/// Whether the CPU's products of bf16 are faster than products in fp32. AMD's do twice the work of
/// one in fp32 in the same time. Intel's (Sapphire Rapids) take four times as long as one in fp32,
/// so multiplying elements widened to fp32 is 1.6 times as fast.
TITAN_API bool multiplies_bf16_fast();

/// The builds of this binary, without a check of the CPU.
const Kernels* avx2_build();
const Kernels* avx512_build();
const Kernels* avx512_bf16_build();

}  // namespace titan::ops
