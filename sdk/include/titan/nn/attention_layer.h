// What a layer that attends shows to others, whatever its class. Context parallelism, and whoever
// else cuts attention over keys, speaks to this.
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

/// n queries and m keys of one row or document, or of several rows that are alike.
struct AttentionBlock {
  /// The keys are the queries' own tokens, and query i sees keys 0 ... i. Else every key comes
  /// before every query.
  bool causal = true;
  /// int64 (n) and (m), in host memory, each ascending: where each token stands in its document,
  /// or in its whole row where documents see each other. Undefined unless the rule needs them.
  at::Tensor query_places, key_places;
};

/// How a layer attends: softmax over scores of queries and keys, which multiplies values. It
/// computes blocks of keys, whose results are put together by their logsumexp, so that the keys may
/// lie on other ranks or come one after the other. Scale, window and whatever else bends a score
/// are the rule's own.
///
/// q (B, H, n, hd), k (B, KV, m, hd) and v (B, KV, m, hdv) of one dtype. Calls record no graph.
/// Stateless. Rules that there are: titan/nn/attention_rules.h.
class TITAN_API AttentionRule {
 public:
  virtual ~AttentionRule();
  /// The softmax over these keys alone. A query that sees none has a logsumexp of -inf and any
  /// finite output.
  virtual ops::AttentionResult forward(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const AttentionBlock& block) const = 0;
  /// This block's share of the gradients, where `whole` is the result over all keys.
  virtual ops::AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q,
                                           const at::Tensor& k, const at::Tensor& v,
                                           const ops::AttentionResult& whole,
                                           const AttentionBlock& block) const = 0;
  /// Whether blocks have to say where their tokens stand.
  virtual bool needs_places() const { return false; }
  /// (H), differentiable: a score of each query head that joins the softmax of each of its queries
  /// once, with a value of zero. Whoever puts blocks together joins them to the whole, after the
  /// last block (join_sinks). Undefined: there are none.
  virtual at::Tensor sinks() const;
};

/// scale · q·k, by ops::attention_forward and ops::attention_backward; none: 1 / sqrt(hd).
TITAN_API std::shared_ptr<const AttentionRule> plain_attention(std::optional<double> scale = {});

/// By `rule` over all keys of this rank: causal within a row, or within its `documents` where these
/// are defined (Batch::documents). (B, H, S, hdv), differentiable once, in the rule's sinks too.
TITAN_API at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& documents,
                            const std::shared_ptr<const AttentionRule>& rule);

/// Computes attention; context parallelism brings one of its own, which follows the layer's rule.
class TITAN_API AttentionKernel {
 public:
  virtual ~AttentionKernel();
  /// q (B, H, S, hd), k (B, KV, S, hd), v (B, KV, S, hdv), H a multiple of KV -> (B, H, S, hdv);
  /// the rule's sinks are joined. Causal within a
  /// row, or within the documents of a row when the batch has them.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Batch& batch) = 0;
};

/// What a layer holds to attend: its rule, and the place where others compute by it.
class TITAN_API AttentionCore {
 public:
  /// softmax(scale · q kᵀ) v by the fused operations; none: 1 / sqrt(hd).
  explicit AttentionCore(std::optional<double> scale = {});
  explicit AttentionCore(std::shared_ptr<const AttentionRule> rule);
  ~AttentionCore();

  /// As AttentionKernel::attend; a batch with a cache (Batch::kv_cache) is attended to by the rule
  /// alone. config Error: such a batch where another one computes attention.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) {
    return batch.kv_cache ? attend_cached(q, k, v, batch) : kernel_->attend(q, k, v, batch);
  }

  const std::shared_ptr<const AttentionRule>& rule() const { return rule_; }
  /// As those of Linear; `place`: the layer, in messages.
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

/// Optional: a Module that attends.
class TITAN_API AttentionLayer {
 public:
  virtual ~AttentionLayer();
  virtual AttentionCore& core() = 0;
  /// Of the whole layer, whatever part of it this rank computes.
  virtual int64_t num_heads() const = 0;
  virtual int64_t num_kv_heads() const = 0;
  /// Parameters that have one element or row for each query head, on dimension 0: whoever deals
  /// heads to ranks cuts them there.
  virtual std::vector<Parameter*> head_parameters() { return {}; }
  /// Normalisations over all heads of a token together. A parallelism that deals heads to ranks
  /// cuts their weights on dimension 0, too, and sums the squares over these ranks.
  virtual std::vector<RmsNorm*> head_norms() { return {}; }
};

}  // namespace titan::nn
