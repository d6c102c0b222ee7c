// The attention rules from which models choose, in addition to plain_attention: windows, chunks,
// sinks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// A query sees the last `size` tokens including its own (Beltagy et al., 2020). Hidden pairs are
/// skipped: n tokens cost about as much as 2 n · size pairs. `scale` as in plain_attention.
TITAN_API std::shared_ptr<const AttentionRule> windowed_attention(int64_t size,
                                                                  std::optional<double> scale = {});

/// A document, or a row without document isolation, is split into chunks of `size` tokens from its
/// start. A query sees the earlier tokens of its own chunk (Llama 4).
TITAN_API std::shared_ptr<const AttentionRule> chunked_attention(int64_t size,
                                                                 std::optional<double> scale = {});

/// `rule` with attention sinks: `scores`, (H) or this rank's shard, a parameter of the layer
/// (AttentionLayer::head_parameters). Xiao et al., 2023; gpt-oss.
TITAN_API std::shared_ptr<const AttentionRule> with_sinks(std::shared_ptr<const AttentionRule> rule,
                                                          std::shared_ptr<Parameter> scores);

/// Adds `sinks` (H), AttentionRule::sinks, to the softmax of a result over all keys.
TITAN_API ops::AttentionResult join_sinks(const ops::AttentionResult& result,
                                          const at::Tensor& sinks);
/// The gradient of `sinks` (H), given `whole`, the result of join_sinks. A sink scales the output
/// down by its share of the softmax.
TITAN_API at::Tensor sink_gradient(const at::Tensor& grad_out, const ops::AttentionResult& whole,
                                   const at::Tensor& sinks);

}  // namespace titan::nn
