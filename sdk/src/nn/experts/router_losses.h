// Auxiliary losses of a router, as sums over tokens (nn::with_auxiliary_loss). Used by router.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/batch.h>

namespace titan::nn {

/// scores (B, S, E), experts (B, S, k). Per sequence: its tokens · E / (k S) · sum over experts of
/// count · mean share of scores; summed over sequences. 1 per token if both are even. DeepSeek-V3,
/// 2024 (arXiv:2412.19437), equations 17 to 20. `is_padding`, bool (B, S): tokens that do not count
/// as part of their sequence; undefined: all count.
at::Tensor balance_loss_sum(const at::Tensor& scores, const at::Tensor& experts,
                            const at::Tensor& is_padding = {});

/// logits (B, S, E): logsumexp² of each token, summed over the tokens that the main loss counts,
/// those whose label is not ignored; over all tokens if the batch has no labels. Zoph et al., 2022
/// (arXiv:2202.08906), equation 5.
at::Tensor z_loss_sum(const at::Tensor& logits, const Batch& batch);

}  // namespace titan::nn
