// Multi-head latent attention: keys and values of all heads are computed from one narrow latent per
// token, and generation caches only the latent. DeepSeek-V2, 2024 (arXiv:2405.04434), section 2.1.
#pragma once

#include <memory>
#include <string>

#include <titan/nn/attention_layer.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/rms_norm.h>
#include <titan/nn/rope.h>

namespace titan::deepseek_v3 {

/// Widths of one head: nope_dim elements of queries and keys are independent of positions, rope_dim
/// elements are rotated.
struct LatentAttentionOptions {
  int64_t dim = 0;
  int64_t num_heads = 0;
  int64_t q_rank = 0;   ///< width of the queries' latent; 0: no latent
  int64_t kv_rank = 0;  ///< width of the latent of keys and values
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;
  double norm_eps = 1e-6;  ///< of the latents' norms
  double scale = 1;        ///< factor on q·k
  nn::Init input_init;     ///< of all but wo
  nn::Init output_init;    ///< of wo
};

/// x (B, S, dim) -> (B, S, dim). Children: wq (column), or wq_a (replicated), q_norm and wq_b
/// (column); wkv_a (replicated), whose rows are the latent and the rotated part of keys, shared by
/// all heads; kv_norm; wkv_b (column), for each head keys, then values; wo (row). The number of
/// heads on this rank comes from the weights' actual shapes.
///
/// Elements that rotate together are adjacent in wq, wq_b and wkv_a, as in DeepSeek's files. For
/// the rotation they are moved half a head apart, in queries and keys alike, which does not change
/// scores.
///
/// With a cache (Batch::kv_cache) a token keeps kv_rank + rope_dim numbers for all heads, and
/// kv_rank again as their value: wkv_b multiplies queries and outputs instead of keys and values.
/// If another plugin computes in wkv_b, the heads' own keys and values are cached instead.
class LatentAttention final : public nn::Module, public nn::AttentionLayer {
 public:
  /// `rope`, over rope_dim, is shared by the layers of a model.
  LatentAttention(const LatentAttentionOptions& options, std::shared_ptr<nn::Rope> rope);

  nn::AttentionCore& core() override { return core_; }
  int64_t num_heads() const override;
  int64_t num_kv_heads() const override { return num_heads(); }
  std::string computed_by() const override { return core_.kernel_owners().text(); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  /// Heads (B, S, heads, width), before keys and values are computed from the latent.
  struct Projected {
    at::Tensor q_nope, q_rope;  // of each of this rank's heads
    at::Tensor latent, k_rope;  // one for all heads
  };
  nn::Linear& add_projection(const char* name, int64_t in, int64_t out, nn::WeightLayout layout);
  nn::RmsNorm& add_norm(const char* name, int64_t width);
  Projected project(const at::Tensor& x, const Batch& batch);
  /// -> (B, S, heads * value_dim).
  at::Tensor attend_heads(const Projected& projected, const Batch& batch);
  at::Tensor attend_latents(const Projected& projected, const Batch& batch);

  LatentAttentionOptions options_;
  nn::Linear* wq_ = nullptr;    // without a latent of queries
  nn::Linear* wq_a_ = nullptr;  // with a latent of queries
  nn::RmsNorm* q_norm_ = nullptr;
  nn::Linear* wq_b_ = nullptr;
  nn::Linear* wkv_a_;
  nn::RmsNorm* kv_norm_;
  nn::Linear* wkv_b_;
  nn::Linear* wo_;
  std::shared_ptr<nn::Rope> rope_;
  nn::AttentionCore core_;
};

}  // namespace titan::deepseek_v3
