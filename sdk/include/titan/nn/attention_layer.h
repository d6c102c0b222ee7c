// The interface of every layer that computes attention. Context parallelism, and other code that
// splits attention over keys, uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/kernel_seam.h>
#include <titan/nn/parameter.h>
#include <titan/ops/attention.h>

namespace titan::nn {

class RmsNorm;

/// n queries and m keys of one row or document, or of several rows with the same structure.
struct AttentionBlock {
  /// true: the keys are the queries' own tokens, and query i sees keys 0 ... i. false: every key
  /// precedes every query.
  bool causal = true;
  /// int64 (n) and (m), in host memory, each ascending: position of each token in its document, or
  /// in its row without document isolation. Undefined unless the rule needs them.
  at::Tensor query_places, key_places;
};

/// The attention of a layer: softmax over scores of queries and keys, which weights values. It
/// computes blocks of keys and combines their results by logsumexp, so keys may be on other ranks
/// or arrive one block after the other. Scale, window and all other changes of scores belong to the
/// rule.
///
/// q (B, H, n, hd), k (B, KV, m, hd) and v (B, KV, m, hdv) of one dtype. Calls record no autograd
/// graph. Stateless. Available rules: titan/nn/attention_rules.h.
class TITAN_API AttentionRule {
 public:
  virtual ~AttentionRule();
  /// The softmax over these keys only. A query that sees none gets a logsumexp of -inf and any
  /// finite output.
  virtual ops::AttentionResult forward(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const AttentionBlock& block) const = 0;
  /// This block's contribution to the gradients, given `whole`, the result over all keys.
  virtual ops::AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q,
                                           const at::Tensor& k, const at::Tensor& v,
                                           const ops::AttentionResult& whole,
                                           const AttentionBlock& block) const = 0;
  /// Whether blocks need the positions of their tokens.
  virtual bool needs_places() const { return false; }
  /// (H), differentiable: one score per query head that joins the softmax of each of its queries
  /// with a value of zero. Code that combines blocks adds the sinks once, after the last block
  /// (join_sinks). Undefined: no sinks.
  virtual at::Tensor sinks() const;
};

/// scale · q·k, by ops::attention_forward and ops::attention_backward; unset: 1 / sqrt(hd).
TITAN_API std::shared_ptr<const AttentionRule> plain_attention(std::optional<double> scale = {});

/// Attention by `rule` over all keys of this rank: causal within a row, or within its `documents`
/// if defined (Batch::documents). (B, H, S, hdv), differentiable once, also in the rule's sinks.
TITAN_API at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& documents,
                            const std::shared_ptr<const AttentionRule>& rule);

/// Computes attention. Context parallelism replaces it with a kernel that applies the layer's rule.
class TITAN_API AttentionKernel {
 public:
  virtual ~AttentionKernel();
  /// q (B, H, S, hd), k (B, KV, S, hd), v (B, KV, S, hdv), H a multiple of KV -> (B, H, S, hdv),
  /// including the rule's sinks. Causal within a row, or within the documents of a row if the batch
  /// has them.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Batch& batch) = 0;
};

/// The attention of a layer: its rule, and the seam where plugins replace the kernel.
class TITAN_API AttentionCore {
 public:
  /// softmax(scale · q kᵀ) v by the fused operations; unset: 1 / sqrt(hd).
  explicit AttentionCore(std::optional<double> scale = {});
  explicit AttentionCore(std::shared_ptr<const AttentionRule> rule);
  ~AttentionCore();

  /// As AttentionKernel::attend. A batch with a cache (Batch::kv_cache) uses the rule only. Throws
  /// a config Error for such a batch if a plugin has replaced the kernel.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) {
    return batch.kv_cache ? attend_cached(q, k, v, batch) : kernel_->attend(q, k, v, batch);
  }

  const std::shared_ptr<const AttentionRule>& rule() const { return rule_; }
  /// As Linear::set_kernel and wrap_kernel; `place`: the layer, for messages.
  void set_kernel(std::string owner, std::unique_ptr<AttentionKernel> kernel,
                  std::string_view place);
  void wrap_kernel(std::string owner, const KernelAround<AttentionKernel>& around,
                   std::string_view place);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }

 private:
  at::Tensor attend_cached(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const Batch& batch);

  std::shared_ptr<const AttentionRule> rule_;  // shared with kernels and graphs
  KernelSeam<AttentionKernel> kernel_;
};

/// Optional: a Module that computes attention.
class TITAN_API AttentionLayer {
 public:
  virtual ~AttentionLayer();
  virtual AttentionCore& core() = 0;
  /// Of the whole layer, not only of this rank's heads.
  virtual int64_t num_heads() const = 0;
  virtual int64_t num_kv_heads() const = 0;
  /// Parameters with one element or row per query head, on dimension 0. Parallelisms that
  /// distribute heads over ranks shard them there.
  virtual std::vector<Parameter*> head_parameters() { return {}; }
  /// Normalisations over all heads of a token together. A parallelism that distributes heads over
  /// ranks also shards their weights on dimension 0, and sums the squares over these ranks.
  virtual std::vector<RmsNorm*> head_norms() { return {}; }
};

}  // namespace titan::nn
