#include "attention_tiles.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "hidden_scores.h"
#include "sum_type.h"
#include "window.h"

namespace titan::nn {
namespace {

using at::Tensor;
using ops::AttentionGradients;
using ops::AttentionResult;

Tensor tokens(const Tensor& x, const Run& run) {
  return x.narrow(2, run.first, run.count);
}

AttentionResult tokens(const AttentionResult& result, const Run& run) {
  return {tokens(result.out, run), tokens(result.logsumexp, run)};
}

AttentionResult attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tile& tile,
                       double scale) {
  switch (tile.sight) {
    case Tile::Sight::windowed:
      return window_forward(q, k, v, tile.window, scale);
    case Tile::Sight::recent:
      return recent_forward(q, k, v, {tile.queries.place, tile.keys.place, tile.window}, scale);
    default:
      return ops::attention_forward(q, k, v,
                                    {.causal = tile.sight == Tile::Sight::causal, .scale = scale});
  }
}

AttentionGradients gradients(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                             const Tensor& v, const AttentionResult& whole, const Tile& tile,
                             double scale) {
  switch (tile.sight) {
    case Tile::Sight::windowed:
      return window_backward(grad_out, q, k, v, whole, tile.window, scale);
    case Tile::Sight::recent:
      return recent_backward(grad_out, q, k, v, whole,
                             {tile.queries.place, tile.keys.place, tile.window}, scale);
    default:
      return ops::attention_backward(grad_out, q, k, v, {whole.out, whole.logsumexp.contiguous()},
                                     {.causal = tile.sight == Tile::Sight::causal, .scale = scale});
  }
}

/// (B, heads, n, width) over (B, n, heads, width) storage.
Tensor zero_heads(const Tensor& like, int64_t width, at::ScalarType type) {
  return at::zeros({like.size(0), like.size(2), like.size(1), width}, like.options().dtype(type))
      .transpose(1, 2);
}

bool is_whole(const std::vector<Tile>& tiles, const Tensor& q, const Tensor& k) {
  return tiles.size() == 1 && tiles[0].queries.count == q.size(2) &&
         tiles[0].keys.count == k.size(2);
}

}  // namespace

std::vector<Run> runs_of(const Tensor& places) {
  const Tensor in_order = places.contiguous();
  const int64_t* place = in_order.const_data_ptr<int64_t>();
  std::vector<Run> runs;
  for (int64_t i = 0; i < in_order.numel(); ++i) {
    if (i == 0 || place[i] != place[i - 1] + 1)
      runs.push_back({.first = i, .count = 0, .place = place[i]});
    ++runs.back().count;
  }
  return runs;
}

AttentionResult attend_tiles(const Tensor& q, const Tensor& k, const Tensor& v,
                             const std::vector<Tile>& tiles, double scale) {
  if (is_whole(tiles, q, k)) return attend(q, k, v, tiles[0], scale);
  const AttentionResult total = {
      zero_heads(q, v.size(3), sum_type(q)),
      at::full(q.sizes().slice(0, 3), -std::numeric_limits<double>::infinity(),
               q.options().dtype(sum_type(q)))};
  for (const Tile& tile : tiles)
    ops::merge_attention(
        tokens(total, tile.queries),
        attend(tokens(q, tile.queries), tokens(k, tile.keys), tokens(v, tile.keys), tile, scale));
  return {total.out.to(q.scalar_type()), total.logsumexp};
}

AttentionGradients tile_gradients(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                  const Tensor& v, const AttentionResult& whole,
                                  const std::vector<Tile>& tiles, double scale) {
  if (is_whole(tiles, q, k)) return gradients(grad_out, q, k, v, whole, tiles[0], scale);
  const at::ScalarType type = sum_type(q);
  const Tensor dq = zero_heads(q, q.size(3), type), dk = zero_heads(k, k.size(3), type),
               dv = zero_heads(v, v.size(3), type);
  for (const Tile& tile : tiles) {
    const AttentionGradients d =
        gradients(tokens(grad_out, tile.queries), tokens(q, tile.queries), tokens(k, tile.keys),
                  tokens(v, tile.keys), tokens(whole, tile.queries), tile, scale);
    tokens(dq, tile.queries).add_(d.q);
    tokens(dk, tile.keys).add_(d.k);
    tokens(dv, tile.keys).add_(d.v);
  }
  return {dq.to(q.scalar_type()), dk.to(k.scalar_type()), dv.to(v.scalar_type())};
}

}  // namespace titan::nn
