// What a router can add to the main loss, as sums over tokens (nn::with_auxiliary_loss). Used by
// router.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/batch.h>

namespace titan::nn {

/// scores (B, S, E), experts (B, S, k): of each sequence E / (k S) sum over experts of count times
/// mean share of scores, times its tokens, added up: 1 a token where both are even. DeepSeek-V3,
/// 2024 (arXiv:2412.19437), equations 17 to 20. `is_padding`, bool (B, S): these tokens are no part
/// of their sequence; undefined: all are.
at::Tensor balance_loss_sum(const at::Tensor& scores, const at::Tensor& experts,
                            const at::Tensor& is_padding = {});

/// logits (B, S, E): logsumexp² of each token, added up over those that the main loss counts: their
/// label is not ignored. All, where the batch has no labels. Zoph et al., 2022 (arXiv:2202.08906),
/// equation 5.
at::Tensor z_loss_sum(const at::Tensor& logits, const Batch& batch);

}  // namespace titan::nn
