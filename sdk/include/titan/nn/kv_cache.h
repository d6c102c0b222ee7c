// Keys and values that attention computed for earlier tokens, so that generating the next one does
// not compute them again.
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
  int64_t slot = 0;   ///< which sequence of the cache
  int64_t start = 0;  ///< tokens of the sequence that are in the cache already
  int64_t first = 0;
  int64_t count = 0;
};

/// What every layer that attends keeps of each sequence: keys after rotation and values, (KV,
/// capacity, hd) a slot: 2 · layers · slots · capacity · KV · hd numbers in the activations' type,
/// on a CPU in fp32 at least. Memory comes with the first use of each layer. Thread: trainer
/// thread.
class TITAN_API KvCache {
 public:
  KvCache(int64_t num_slots, int64_t capacity);
  ~KvCache();
  KvCache(const KvCache&) = delete;

  int64_t num_slots() const { return num_slots_; }
  int64_t capacity() const { return capacity_; }

  /// Of the batch that is run next; layers read it. Throws an internal Error for a span that leaves
  /// its slot.
  void begin(std::vector<CachedSpan> spans);
  const std::vector<CachedSpan>& spans() const { return spans_; }

  /// What AttentionCore does with a batch that has a cache. `layer`: whose keys and values they
  /// are. q (1, H, S, hd), k and v (1, KV, S, hd) of the batch's tokens; keys and values of the
  /// spans are taken in, and each token attends by `rule` to those before it in its sequence ->
  /// (1, H, S, hd), zeros for tokens of no span.
  at::Tensor attend(const void* layer, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const AttentionRule& rule);

  /// Every layer's first `count` tokens of `from` become those of `to`: samples of one prompt.
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
