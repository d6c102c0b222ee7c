#include <titan/nn/attention_rules.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>
#include <titan/error.h>

#include "attention_tiles.h"

namespace titan::nn {
namespace {

using at::Tensor;
using Tiles = std::vector<Tile>;

/// A rule that hides keys by position: the keys that a query sees form a list of tiles.
class PlacedAttention : public AttentionRule {
 public:
  explicit PlacedAttention(std::optional<double> scale) : scale_(scale) {}
  bool needs_places() const final { return true; }

  ops::AttentionResult forward(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionBlock& block) const final {
    return attend_tiles(q, k, v, tiles_of(block), scale_of(q));
  }
  ops::AttentionGradients backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                   const Tensor& v, const ops::AttentionResult& whole,
                                   const AttentionBlock& block) const final {
    return tile_gradients(grad_out, q, k, v, whole, tiles_of(block), scale_of(q));
  }

 private:
  /// Adds the tiles of a run of queries over its own keys.
  virtual void add_own(const Run& run, Tiles& tiles) const = 0;
  /// Adds the tiles over keys at positions up to that of the first query.
  virtual void add_earlier(const Run& queries, const Run& keys, Tiles& tiles) const = 0;

  double scale_of(const Tensor& q) const {
    return scale_.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  }
  Tiles tiles_of(const AttentionBlock& block) const {
    Tiles tiles;
    const std::vector<Run> queries = runs_of(block.query_places);
    if (block.causal) {
      for (size_t i = 0; i < queries.size(); ++i) {
        add_own(queries[i], tiles);
        for (size_t j = 0; j < i; ++j) add_earlier(queries[i], queries[j], tiles);
      }
      return tiles;
    }
    for (const Run& keys : runs_of(block.key_places))
      for (const Run& run : queries) add_earlier(run, keys, tiles);
    return tiles;
  }

  std::optional<double> scale_;
};

/// Tokens [first, end) of `run`, by position.
Run between(const Run& run, int64_t first, int64_t end) {
  return {.first = run.first + first - run.place, .count = end - first, .place = first};
}

class WindowedAttention final : public PlacedAttention {
 public:
  WindowedAttention(int64_t size, std::optional<double> scale)
      : PlacedAttention(scale), size_(size) {}

 private:
  void add_own(const Run& run, Tiles& tiles) const override {
    tiles.push_back({run, run, Tile::Sight::windowed, size_});
  }
  void add_earlier(const Run& queries, const Run& keys, Tiles& tiles) const override {
    // the last earlier key is seen by the next size - 1 queries
    const int64_t first_key = std::max(keys.place, queries.place - size_ + 1);
    const int64_t end_query = std::min(queries.end_place(), keys.end_place() + size_ - 1);
    if (first_key >= keys.end_place() || end_query <= queries.place) return;
    const bool sees_all = end_query - 1 - first_key < size_;
    tiles.push_back({between(queries, queries.place, end_query),
                     between(keys, first_key, keys.end_place()),
                     sees_all ? Tile::Sight::all : Tile::Sight::recent, size_});
  }

  int64_t size_;
};

class ChunkedAttention final : public PlacedAttention {
 public:
  ChunkedAttention(int64_t size, std::optional<double> scale)
      : PlacedAttention(scale), size_(size) {}

 private:
  int64_t end_of_chunk(int64_t place) const { return (place / size_ + 1) * size_; }

  void add_own(const Run& run, Tiles& tiles) const override {
    for (int64_t first = run.place, end = 0; first < run.end_place(); first = end) {
      end = std::min(run.end_place(), end_of_chunk(first));
      const Run piece = between(run, first, end);
      tiles.push_back({piece, piece, Tile::Sight::causal});
    }
  }
  void add_earlier(const Run& queries, const Run& keys, Tiles& tiles) const override {
    // only the last key's chunk can reach the queries
    const int64_t end = end_of_chunk(keys.end_place() - 1),
                  first_key = std::max(keys.place, end - size_);
    const int64_t end_query = std::min(queries.end_place(), end);
    if (end_query > queries.place)
      tiles.push_back({between(queries, queries.place, end_query),
                       between(keys, first_key, keys.end_place()), Tile::Sight::all});
  }

  int64_t size_;
};

class AttentionWithSinks final : public AttentionRule {
 public:
  AttentionWithSinks(std::shared_ptr<const AttentionRule> rule, std::shared_ptr<Parameter> scores)
      : rule_(std::move(rule)), scores_(std::move(scores)) {}
  ops::AttentionResult forward(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionBlock& block) const override {
    return rule_->forward(q, k, v, block);
  }
  ops::AttentionGradients backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                   const Tensor& v, const ops::AttentionResult& whole,
                                   const AttentionBlock& block) const override {
    return rule_->backward(grad_out, q, k, v, whole, block);
  }
  bool needs_places() const override { return rule_->needs_places(); }
  Tensor sinks() const override { return scores_->value(); }

 private:
  std::shared_ptr<const AttentionRule> rule_;
  std::shared_ptr<Parameter> scores_;  // the layer's
};

/// (H) as (H, 1) in the type of logsumexps.
Tensor of_queries(const Tensor& sinks, const Tensor& logsumexp) {
  return sinks.to(logsumexp.scalar_type()).unsqueeze(-1);
}

}  // namespace

std::shared_ptr<const AttentionRule> windowed_attention(int64_t size, std::optional<double> scale) {
  TITAN_CHECK(size > 0, config, "a window of attention has at least its own token, got ", size);
  return std::make_shared<WindowedAttention>(size, scale);
}

std::shared_ptr<const AttentionRule> chunked_attention(int64_t size, std::optional<double> scale) {
  TITAN_CHECK(size > 0, config, "chunks of attention have at least one token, got ", size);
  return std::make_shared<ChunkedAttention>(size, scale);
}

std::shared_ptr<const AttentionRule> with_sinks(std::shared_ptr<const AttentionRule> rule,
                                                std::shared_ptr<Parameter> scores) {
  return std::make_shared<AttentionWithSinks>(std::move(rule), std::move(scores));
}

ops::AttentionResult join_sinks(const ops::AttentionResult& result, const Tensor& sinks) {
  const Tensor logsumexp = at::logaddexp(result.logsumexp, of_queries(sinks, result.logsumexp));
  const Tensor share = at::exp(result.logsumexp - logsumexp).unsqueeze(-1);
  return {(result.out * share).to(result.out.scalar_type()), logsumexp};
}

Tensor sink_gradient(const Tensor& grad_out, const ops::AttentionResult& whole,
                     const Tensor& sinks) {
  const at::ScalarType type = whole.logsumexp.scalar_type();
  const Tensor share = at::exp(of_queries(sinks, whole.logsumexp) - whole.logsumexp);
  const Tensor taken = (grad_out.to(type) * whole.out.to(type)).sum(-1);  // (B, H, n)
  return -(share * taken).sum(at::IntArrayRef({0, 2})).to(sinks.scalar_type());
}

}  // namespace titan::nn
