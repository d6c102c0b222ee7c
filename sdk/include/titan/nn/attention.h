// Grouped-query self-attention with rotary positions. Vaswani et al., 2017; Ainslie et al., 2023.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <titan/nn/attention_layer.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/rms_norm.h>
#include <titan/nn/rope.h>

namespace titan::nn {

struct AttentionOptions {
  int64_t dim = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  Init input_init;   ///< of wq, wk, wv
  Init output_init;  ///< of wo
  /// Queries and keys are normalised head by head before they are rotated (Henry et al., 2020),
  /// with this epsilon; none: they are not.
  std::optional<double> qk_norm_eps = {};
  /// They are normalised over all heads of a token together instead, by a weight for each element
  /// of each head (Team OLMo, 2025, arXiv:2501.00656).
  bool qk_norm_spans_heads = false;
  /// All four projections have a bias, drawn like their weights.
  bool has_bias = false;
  /// A query sees so many of the last tokens, its own among them; 0: all.
  int64_t window = 0;
  /// A query sees what is before it in its own piece of so many tokens (chunked_attention); 0:
  /// there are no pieces.
  int64_t chunk = 0;
  /// Each head has a score that takes part in its softmax without a value (with_sinks), drawn by
  /// this; none: it has not.
  std::optional<Init> sinks_init = {};
};

/// What this rank holds of the projections, as their layers read it: (heads · hd, dim).
struct AttentionInputWeights {
  Parameter& wq;
  Parameter& wk;
  Parameter& wv;
};

/// Queries (B, S, H, hd), keys and values (B, S, KV, hd), of one dtype, each head contiguous.
struct AttentionInputs {
  at::Tensor q, k, v;
};

/// Computes what attention works on: the three projections and the rotation.
class TITAN_API AttentionInputKernel {
 public:
  virtual ~AttentionInputKernel();
  /// x (B, S, dim) -> queries and keys rotated by the positions of `batch`, and values. `rope`:
  /// null where the layer has no positions. Differentiable in x and the weights.
  virtual AttentionInputs project(const at::Tensor& x, const AttentionInputWeights& weights,
                                  Rope* rope, const Batch& batch) = 0;
};

/// x (B, S, dim) -> (B, S, dim). Children wq, wk, wv (column), wo (row). The number of heads that
/// runs here comes from the weights' actual shapes, so a column-parallel rank computes its own
/// heads by the same code.
///
/// With sinks_init also the parameter sinks, (num_heads). With qk_norm_eps also children q_norm and
/// k_norm, RmsNorm over (hd): every head is normalised by the same weight, so where ranks compute
/// heads of their own its gradient is a partial sum. With qk_norm_spans_heads over (num_heads · hd)
/// and (num_kv_heads · hd), and these are head_norms().
class TITAN_API Attention final : public Module, public AttentionLayer {
 public:
  /// `rope` is shared by all attention layers of a model: one table. Null: queries and keys are not
  /// rotated.
  Attention(const AttentionOptions& options, std::shared_ptr<Rope> rope);
  ~Attention() override;

  int64_t head_dim() const { return head_dim_; }
  int64_t num_heads() const override { return wq_.weight().global_shape()[0] / head_dim_; }
  int64_t num_kv_heads() const override { return wk_.weight().global_shape()[0] / head_dim_; }
  AttentionCore& core() override { return core_; }
  std::vector<Parameter*> head_parameters() override;
  std::vector<RmsNorm*> head_norms() override;
  /// Null: the layer has no positions. Others may share it.
  Rope* rope() const { return rope_.get(); }
  /// Null: queries and keys are rotated as they are projected. Both or none.
  RmsNorm* q_norm() const { return q_norm_; }
  RmsNorm* k_norm() const { return k_norm_; }
  /// As those of Linear.
  void set_kernel(std::string owner, std::unique_ptr<AttentionKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<AttentionKernel>& around);
  const KernelOwners& kernel_owners() const { return core_.kernel_owners(); }
  AttentionInputWeights input_weights() { return {wq_.weight(), wk_.weight(), wv_.weight()}; }
  /// Of the projections and the rotation, which get nothing to run: refused where somebody computes
  /// in one of them, and who would later is. config Error where has_plain_inputs() is false: such a
  /// kernel knows nothing of what is in between.
  void set_input_kernel(std::string owner, std::unique_ptr<AttentionInputKernel> kernel);
  /// Whether queries, keys and values are x times the weights, and rotated: no norms, no biases.
  bool has_plain_inputs() const { return rope_ && !q_norm_ && !wq_.bias(); }
  /// `owner` goes around what computes queries, keys and values.
  void wrap_input_kernel(std::string owner, const KernelAround<AttentionInputKernel>& around);
  const KernelOwners& input_kernel_owners() const { return inputs_.owners(); }
  std::string computed_by() const override;

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  class Composed;
  std::string place() const;
  Linear& add_projection(const char* name, const AttentionOptions& options, int64_t num_heads);
  std::shared_ptr<Parameter> add_sinks(const AttentionOptions& options);

  int64_t head_dim_;
  Linear& wq_;
  Linear& wk_;
  Linear& wv_;
  Linear& wo_;
  RmsNorm* q_norm_;  // null: none
  RmsNorm* k_norm_;
  bool norms_span_heads_;
  std::shared_ptr<Rope> rope_;        // null: no positions
  std::shared_ptr<Parameter> sinks_;  // null: none; the rule has them, too
  AttentionCore core_;
  KernelSeam<AttentionInputKernel> inputs_;
};

}  // namespace titan::nn
