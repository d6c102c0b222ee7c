#include <titan/models/transformer_block.h>

#include <ATen/TensorOperators.h>

namespace titan::models {

TransformerBlock::TransformerBlock(const BlockOptions& options, std::shared_ptr<nn::Rope> rope)
    : attention_(add_attention(options, std::move(rope))),
      feed_forward_(add_feed_forward(options)),
      attention_norm_(add_module("attention_norm",
                                 std::make_unique<nn::RmsNorm>(options.dim, options.norm_eps))),
      ffn_norm_(
          add_module("ffn_norm", std::make_unique<nn::RmsNorm>(options.dim, options.norm_eps))),
      norms_after_(options.norms_after) {}

nn::Module& TransformerBlock::add_attention(const BlockOptions& options,
                                            std::shared_ptr<nn::Rope> rope) {
  if (options.make_attention)
    return add_module("attention", options.make_attention(std::move(rope)));
  nn::Attention& attention = add_module(
      "attention", std::make_unique<nn::Attention>(
                       options.attention, options.has_positions ? std::move(rope) : nullptr));
  if (options.on_attention) options.on_attention(attention);
  return attention;
}

nn::Module& TransformerBlock::add_feed_forward(const BlockOptions& options) {
  if (options.mixture)
    return add_module("moe", std::make_unique<nn::MixtureOfExperts>(*options.mixture));
  return add_module("feed_forward", std::make_unique<nn::FeedForward>(options.feed_forward));
}

at::Tensor TransformerBlock::forward(const at::Tensor& x, const Batch& batch) {
  if (norms_after_) {
    const at::Tensor h = x + attention_norm_(attention_(x, batch), batch);
    return h + ffn_norm_(feed_forward_(h, batch), batch);
  }
  const at::Tensor h = ffn_norm_.add(x, attention_(attention_norm_(x, batch), batch));
  return h + feed_forward_(ffn_norm_(h, batch), batch);
}

}  // namespace titan::models
