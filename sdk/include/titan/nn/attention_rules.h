// The rules of attention that models choose from, beside plain_attention: windows, chunks, sinks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// A query sees the `size` last tokens, its own among them (Beltagy et al., 2020). What is not seen
/// is not computed: n tokens take about as long as 2 n · size pairs. `scale` as of plain_attention.
TITAN_API std::shared_ptr<const AttentionRule> windowed_attention(int64_t size,
                                                                  std::optional<double> scale = {});

/// A document, or a row where documents see each other, is cut every `size` tokens, from its first
/// on, and a query sees what is before it within its own piece (Llama 4).
TITAN_API std::shared_ptr<const AttentionRule> chunked_attention(int64_t size,
                                                                 std::optional<double> scale = {});

/// `rule` with sinks: `scores`, (H) or this rank's part of it, a parameter of the layer
/// (AttentionLayer::head_parameters). Xiao et al., 2023; gpt-oss.
TITAN_API std::shared_ptr<const AttentionRule> with_sinks(std::shared_ptr<const AttentionRule> rule,
                                                          std::shared_ptr<Parameter> scores);

/// A result over all keys with `sinks` (H), AttentionRule::sinks, in its softmax.
TITAN_API ops::AttentionResult join_sinks(const ops::AttentionResult& result,
                                          const at::Tensor& sinks);
/// The gradient of `sinks` (H), where `whole` is what join_sinks gave: each takes away from the
/// output in proportion to its own share.
TITAN_API at::Tensor sink_gradient(const at::Tensor& grad_out, const ops::AttentionResult& whole,
                                   const at::Tensor& sinks);

}  // namespace titan::nn
