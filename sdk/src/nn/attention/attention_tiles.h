// Attention over a list of tiles, rectangles of queries and keys of one block. Used by the rules
// that hide keys (attention_rules.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/nn/attention_layer.h>

namespace titan::nn {

/// Consecutive tokens of a block at consecutive positions of their row.
struct Run {
  int64_t first = 0;  ///< within the block
  int64_t count = 0;
  int64_t place = 0;  ///< of the first
  int64_t end_place() const { return place + count; }
};

/// The tokens at `places` (AttentionBlock), in as few runs as possible.
std::vector<Run> runs_of(const at::Tensor& places);

/// Queries that see some of the given keys.
struct Tile {
  enum class Sight {
    causal,    ///< the keys are the queries' own tokens: each query sees those up to its own
    windowed,  ///< the same, the last `window` of them
    all,       ///< every key
    recent,    ///< earlier keys: those less than `window` positions away
  };
  Run queries, keys;
  Sight sight = Sight::all;
  int64_t window = 0;
};

/// As AttentionRule::forward and backward, over all tiles of a block. For each query, a key is in
/// at most one tile. `scale` is the factor on q·k.
ops::AttentionResult attend_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const std::vector<Tile>& tiles, double scale);
ops::AttentionGradients tile_gradients(const at::Tensor& grad_out, const at::Tensor& q,
                                       const at::Tensor& k, const at::Tensor& v,
                                       const ops::AttentionResult& whole,
                                       const std::vector<Tile>& tiles, double scale);

}  // namespace titan::nn
