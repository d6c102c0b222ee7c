#include <utility>

#include <titan/error.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/kv_cache.h>
#include <titan/ops/document_attention.h>

namespace titan::nn {
namespace {

/// The fused operations, which have autograd of their own.
class FusedAttentionKernel final : public AttentionKernel {
 public:
  explicit FusedAttentionKernel(std::optional<double> scale)
      : options_{.causal = true, .scale = scale} {}
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) override {
    if (batch.documents.defined())
      return ops::document_attention(q, k, v, batch.documents, options_);
    return ops::attention(q, k, v, options_);
  }

 private:
  ops::AttentionOptions options_;
};

class RuledAttentionKernel final : public AttentionKernel {
 public:
  explicit RuledAttentionKernel(std::shared_ptr<const AttentionRule> rule)
      : rule_(std::move(rule)) {}
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) override {
    return nn::attend(q, k, v, batch.documents, rule_);
  }

 private:
  std::shared_ptr<const AttentionRule> rule_;  // shared with the layer and its graphs
};

}  // namespace

AttentionKernel::~AttentionKernel() = default;
AttentionLayer::~AttentionLayer() = default;

AttentionCore::AttentionCore(std::optional<double> scale)
    : rule_(plain_attention(scale)), kernel_(std::make_unique<FusedAttentionKernel>(scale)) {}
AttentionCore::AttentionCore(std::shared_ptr<const AttentionRule> rule)
    : rule_(std::move(rule)), kernel_(std::make_unique<RuledAttentionKernel>(rule_)) {}
AttentionCore::~AttentionCore() = default;

at::Tensor AttentionCore::attend_cached(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const Batch& batch) {
  TITAN_CHECK(kernel_owners().replaced_by.empty(), config, "tokens cannot be generated while '",
              kernel_owners().replaced_by, "' computes attention; generate without it");
  return batch.kv_cache->attend(this, q, k, v, *rule_);
}

void AttentionCore::set_kernel(std::string owner, std::unique_ptr<AttentionKernel> kernel,
                               std::string_view place) {
  kernel_.replace(std::move(owner), std::move(kernel), place);
}

void AttentionCore::wrap_kernel(std::string owner, const KernelAround<AttentionKernel>& around,
                                std::string_view place) {
  kernel_.wrap(std::move(owner), around, place);
}

}  // namespace titan::nn
