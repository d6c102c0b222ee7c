// What a layer needs beside its differentiated input.
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

/// Who else has the tokens of an activation where a layer runs. Tensor parallelism says so.
struct TokenCopies {
  int64_t num_ranks = 1;  ///< that hold the same tokens, this one among them
  /// Whether gradients are partial there, to be summed over these ranks; else each has the whole
  /// one.
  bool gradients_are_summed = false;
};

/// Which tokens of each row an activation has where a layer runs: the `number`-th of `count` equal
/// parts, one after the other, of the row as the batch has it.
struct TokenPart {
  int64_t number = 0;
  int64_t count = 1;
};

/// Where tokens stand in the global batch of the step. Whoever deals rows or cuts sequences says
/// so, and a token's number is the same under every layout.
struct TokenPlaces {
  int64_t first_row = 0;   ///< of the batch, among the rows of all ranks and microbatches
  int64_t row_length = 0;  ///< tokens of a whole row; 0: the batch has whole rows
  /// int64 (seq_len): where in its whole row each token of a row of the batch stands; undefined =
  /// 0 ... seq_len - 1.
  at::Tensor in_row;
  TokenPart part;  ///< tensor parallelism says so

  /// Of an activation (rows, length, ...): each token's row times the length of a whole row plus
  /// its place there, int64 (rows, length) on `device`.
  TITAN_API at::Tensor numbers(int64_t rows, int64_t length, c10::Device device) const;
};

/// One microbatch on the device. Rows are sequences; all tensors have shape (rows, seq_len).
struct Batch {
  at::Tensor tokens;  ///< int64 token ids
  at::Tensor labels;  ///< int64, the next token; -100 = ignored. Undefined: the head returns logits
  at::Tensor positions;  ///< int64 position of each token in its document or row; undefined = 0 ...
                         ///< seq_len - 1
  int64_t num_positions = 0;  ///< every position is below it; 0: not known, so they have to be
                              ///< looked at
  at::Tensor documents;  ///< int32 number of the document within the row, ascending, always in host
                         ///< memory: attention then sees no other document. Undefined = it sees
                         ///< the whole row. Where context parallelism has cut the sequence it still
                         ///< covers whole rows, in the order of that plugin's ranks, whose own
                         ///< attention kernel reads it

  /// bool: whether the token only fills up its row. Undefined: no token does. The loss ignores
  /// padding, and so do counts of tokens and of the load of experts; attention and the layers
  /// compute it as any token. The last token of a row that is filled up predicts nothing and is
  /// padding too, as if the row ended before it.
  at::Tensor is_padding;

  /// What a frozen reference model makes of these tokens, for losses that ask for it (sdk header
  /// titan/reference_loss.h): (rows, seq_len) or (rows, seq_len, vocab), fp32, on the device.
  /// Undefined where no loss asks, and on ranks that do not run the head.
  at::Tensor reference;

  TokenCopies copies;
  TokenPlaces places;
  /// Generation: one row of tokens that go on with the sequences of a cache, whose spans say which;
  /// the tokens behind the last span are padding. Null: attention sees this batch alone.
  std::shared_ptr<nn::KvCache> kv_cache = nullptr;
  /// int64 (n), places in the flattened batch, on the device: of these tokens alone the head gives
  /// logits, (1, n, vocab). Undefined: of all. Only without labels.
  at::Tensor logits_of;
  /// Of the step that is run, shared by its microbatches (nn::with_auxiliary_loss); null outside of
  /// training.
  std::shared_ptr<AuxiliaryLosses> auxiliary_losses = nullptr;

  /// Label of tokens that have no target (PyTorch's ignore_index).
  static constexpr int64_t kIgnoredLabel = -100;

  /// Of this batch, padding left out. Waits for the device where the batch has padding.
  TITAN_API int64_t num_tokens() const;
  /// Of an activation (rows, length, ...): bool (rows, length), `is_padding` of the part of each
  /// row that it has (TokenPlaces::part). Undefined where the batch has no padding.
  TITAN_API at::Tensor padding_of(int64_t length) const;
  /// Rows [first, first + count) of everything there is; shares its memory.
  TITAN_API Batch rows(int64_t first, int64_t count) const;
  /// All but `documents` on `device`; a copy from pinned memory is not waited for.
  TITAN_API Batch to(c10::Device device) const;
};

}  // namespace titan
