// Batch: one microbatch of tokens, and everything that layers need in addition to activations. Used
// by models, losses, parallelisms and the data loader.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan {

class AuxiliaryLosses;
namespace nn {
class KvCache;
}

/// How many ranks hold the tokens of a layer's activation. Set by tensor parallelism.
struct TokenCopies {
  int64_t num_ranks = 1;  ///< ranks that hold the same tokens, this one included
  /// Whether the layer's gradients are partial and must be summed over these ranks. If false, each
  /// rank has the whole gradient.
  bool gradients_are_summed = false;
};

/// Which tokens of each row a layer's activation holds: part `number`, from 0, of `count` equal
/// consecutive parts of the batch's row.
struct TokenPart {
  int64_t number = 0;
  int64_t count = 1;
};

/// Positions of tokens in the step's global batch. The code that assigns rows to ranks or shards
/// sequences sets them, so that a token's number is the same under every layout.
struct TokenPlaces {
  int64_t first_row = 0;   ///< of the batch, counted over the rows of all ranks and microbatches
  int64_t row_length = 0;  ///< tokens of a whole row; 0: the batch has whole rows
  /// int64 (seq_len): index in the whole row of each token of a batch row; undefined = 0 ...
  /// seq_len - 1.
  at::Tensor in_row;
  TokenPart part;  ///< set by tensor parallelism

  /// Token numbers of an activation (rows, length, ...): row times the length of a whole row plus
  /// the index in the row, int64 (rows, length) on `device`.
  TITAN_API at::Tensor numbers(int64_t rows, int64_t length, c10::Device device) const;
};

/// One microbatch on the device. Rows are sequences; all tensors have shape (rows, seq_len).
struct Batch {
  at::Tensor tokens;  ///< int64 token ids
  at::Tensor labels;  ///< int64, the next token; -100 = ignored. Undefined: the head returns logits
  /// int64 position of each token in its document or row; undefined = 0 ... seq_len - 1.
  at::Tensor positions;
  int64_t num_positions = 0;  ///< every position is less; 0: unknown, layers read the positions
  /// int32 number of the document within the row, ascending, always in host memory: attention stays
  /// within a document. Undefined: attention sees the whole row. Under context parallelism it still
  /// covers whole rows, in the order of that plugin's ranks; the plugin's own attention kernel
  /// reads it.
  at::Tensor documents;

  /// bool: whether the token is padding. Undefined: no token is. The loss, token counts and expert
  /// loads ignore padding; attention and the other layers compute it like any token. The last token
  /// before the filling predicts nothing and counts as padding, as if the row ended before it.
  at::Tensor is_padding;

  /// Output of a frozen reference model for these tokens, for losses that need it
  /// (titan/reference_loss.h): (rows, seq_len) or (rows, seq_len, vocab), fp32, on the device.
  /// Undefined if no loss needs it, and on ranks that do not run the head.
  at::Tensor reference;

  TokenCopies copies;
  TokenPlaces places;
  /// Generation: the batch is one row of tokens that continue the sequences of this cache. The
  /// cache's spans map tokens to sequences; tokens after the last span are padding. Null: attention
  /// sees this batch only.
  std::shared_ptr<nn::KvCache> kv_cache = nullptr;
  /// int64 (n) on the device, indices into the flattened batch: the head returns logits of these
  /// tokens only, (1, n, vocab). Undefined: of all tokens. Only without labels.
  at::Tensor logits_of;
  /// Auxiliary losses of the current step, shared by its microbatches (nn::with_auxiliary_loss);
  /// null outside of training.
  std::shared_ptr<AuxiliaryLosses> auxiliary_losses = nullptr;

  /// Label of tokens that predict nothing (PyTorch's ignore_index).
  static constexpr int64_t kIgnoredLabel = -100;

  /// Tokens of this batch without padding. Waits for the device if the batch has padding.
  TITAN_API int64_t num_tokens() const;
  /// `is_padding` of an activation (rows, length, ...): bool (rows, length), for the part of each
  /// row that the activation holds (TokenPlaces::part). Undefined if the batch has no padding.
  TITAN_API at::Tensor padding_of(int64_t length) const;
  /// Rows [first, first + count) of every tensor that has rows; shares memory with this batch.
  TITAN_API Batch rows(int64_t first, int64_t count) const;
  /// All tensors but `documents` on `device`, copied through pinned memory; does not wait for the
  /// copies.
  TITAN_API Batch to(c10::Device device) const;
};

}  // namespace titan
