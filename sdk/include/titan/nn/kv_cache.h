// The keys and values of earlier tokens, so that generation computes only those of new tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::nn {

class AttentionRule;

/// Consecutive tokens of one sequence within a batch of one row: [first, first + count).
struct CachedSpan {
  int64_t slot = 0;   ///< index of the sequence in the cache
  int64_t start = 0;  ///< tokens of the sequence that are already cached
  int64_t first = 0;
  int64_t count = 0;
};

/// Keys (after rotation) and values of each sequence for every attention layer, (KV, capacity, hd)
/// per slot. In total 2 · layers · slots · capacity · KV · hd numbers in the activations' dtype, on
/// a CPU in at least fp32. A layer's memory is allocated on its first use. Thread: trainer thread.
class TITAN_API KvCache {
 public:
  KvCache(int64_t num_slots, int64_t capacity);
  ~KvCache();
  KvCache(const KvCache&) = delete;

  int64_t num_slots() const { return num_slots_; }
  int64_t capacity() const { return capacity_; }

  /// Sets the spans of the next batch; layers read them. Throws an internal Error for a span
  /// outside its slot.
  void begin(std::vector<CachedSpan> spans);
  const std::vector<CachedSpan>& spans() const { return spans_; }

  /// Attention of AttentionCore for a batch with a cache. `layer`: key of the layer in the cache. q
  /// (1, H, S, hd), k and v (1, KV, S, hd) of the batch's tokens. Stores the keys and values of the
  /// spans; each token attends by `rule` to earlier tokens of its sequence and to itself -> (1, H,
  /// S, hd), zeros for tokens outside all spans.
  at::Tensor attend(const void* layer, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const AttentionRule& rule);

  /// Copies the first `count` tokens of slot `from` to slot `to` in every layer: for several
  /// samples of one prompt.
  void copy(int64_t from, int64_t to, int64_t count);

 private:
  struct Store {
    at::Tensor keys, values;  // (slots, KV, capacity, hd)
  };
  int64_t num_slots_, capacity_;
  std::vector<CachedSpan> spans_;
  std::map<const void*, Store> layers_;
};

}  // namespace titan::nn
