// A transformer block: h = x + Attention(RMSNorm(x)), out = h + FeedForward(RMSNorm(h)). The
// feed-forward may be a mixture of experts, and the norms may come after attention and
// feed-forward. Used by build_layers.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <titan/export.h>
#include <titan/nn/attention.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/moe.h>
#include <titan/nn/rms_norm.h>

TITAN_OPTIONAL_HEADER(models_transformer_block);

namespace titan::models {

struct BlockOptions {
  int64_t dim = 0;
  nn::AttentionOptions attention;
  bool has_positions = true;  ///< false: attention does not rotate queries and keys
  /// For a model whose attention is not nn::Attention: makes it, given the network's rotary
  /// embedding, which all layers share. `attention` and `has_positions` are ignored then.
  std::function<std::unique_ptr<nn::Module>(std::shared_ptr<nn::Rope> rope)> make_attention = {};
  /// Receives the block's nn::Attention, for example to wrap its computation.
  std::function<void(nn::Attention&)> on_attention = {};
  nn::FeedForwardOptions feed_forward;  ///< of a block without experts
  std::optional<nn::MoeOptions> mixture = {};
  double norm_eps = 1e-5;
  /// h = x + RMSNorm(Attention(x)), out = h + RMSNorm(FeedForward(h)); the sum itself is not
  /// normalised.
  bool norms_after = false;
};

/// x (B, S, dim) -> (B, S, dim). Children attention, feed_forward or moe, attention_norm,
/// ffn_norm.
class TITAN_API TransformerBlock final : public nn::Module {
 public:
  TransformerBlock(const BlockOptions& options, std::shared_ptr<nn::Rope> rope);

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  nn::Module& add_attention(const BlockOptions& options, std::shared_ptr<nn::Rope> rope);
  nn::Module& add_feed_forward(const BlockOptions& options);

  nn::Module& attention_;
  nn::Module& feed_forward_;
  nn::RmsNorm& attention_norm_;
  nn::RmsNorm& ffn_norm_;
  bool norms_after_;
};

}  // namespace titan::models
