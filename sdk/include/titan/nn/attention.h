// Grouped-query self-attention with rotary positions. Vaswani et al., 2017; Ainslie et al., 2023.
#pragma once

#include <memory>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/rope.h>

namespace titan::nn {

/// Computes softmax(q kᵀ / sqrt(head_dim)) v; context parallelism swaps it.
class TITAN_API AttentionKernel {
 public:
  virtual ~AttentionKernel();
  /// q (B, H, S, hd), k and v (B, KV, S, hd), H a multiple of KV -> (B, H, S, hd). Causal within a
  /// row, or within the documents of a row when the batch has them.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Batch& batch) = 0;
};

struct AttentionOptions {
  int64_t dim = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  Init input_init;   ///< of wq, wk, wv
  Init output_init;  ///< of wo
};

/// x (B, S, dim) -> (B, S, dim). Children wq, wk, wv (column), wo (row). The number of heads that
/// runs here comes from the weights' actual shapes, so a column-parallel rank computes its own
/// heads by the same code.
class TITAN_API Attention final : public Module {
 public:
  /// `rope` is shared by all attention layers of a model: one table.
  Attention(const AttentionOptions& options, std::shared_ptr<Rope> rope);
  ~Attention() override;

  int64_t head_dim() const { return head_dim_; }
  /// Of the whole layer, whatever part of it this rank computes.
  int64_t num_heads() const { return wq_.weight().global_shape()[0] / head_dim_; }
  int64_t num_kv_heads() const { return wk_.weight().global_shape()[0] / head_dim_; }
  /// As those of Linear.
  void set_kernel(std::string taker, std::unique_ptr<AttentionKernel> kernel);
  void wrap_kernel(std::string taker, const KernelAround<AttentionKernel>& around);
  const KernelTakers& kernel_takers() const { return kernel_.takers(); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  int64_t head_dim_;
  Linear& wq_;
  Linear& wk_;
  Linear& wv_;
  Linear& wo_;
  std::shared_ptr<Rope> rope_;
  KernelSeam<AttentionKernel> kernel_;
};

}  // namespace titan::nn
