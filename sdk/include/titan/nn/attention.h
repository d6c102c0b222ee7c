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
  /// Epsilon of the normalisation of queries and keys, head by head, before rotation (Henry et al.,
  /// 2020); unset: none.
  std::optional<double> qk_norm_eps = {};
  /// Normalise over all heads of a token together instead, with a weight per element of each head
  /// (Team OLMo, 2025, arXiv:2501.00656).
  bool qk_norm_spans_heads = false;
  /// All four projections have a bias, initialised like their weights.
  bool has_bias = false;
  /// A query sees this many of the last tokens, including its own; 0: all.
  int64_t window = 0;
  /// A query sees the earlier tokens of its own chunk of this many tokens (chunked_attention); 0:
  /// no chunks.
  int64_t chunk = 0;
  /// Initialisation of attention sinks, a score per head that joins its softmax without a value
  /// (with_sinks); unset: no sinks.
  std::optional<Init> sinks_init = {};
};

/// This rank's shards of the projections, as their layers read them: (heads · hd, dim).
struct AttentionInputWeights {
  Parameter& wq;
  Parameter& wk;
  Parameter& wv;
};

/// Queries (B, S, H, hd), keys and values (B, S, KV, hd), of one dtype, each head contiguous.
struct AttentionInputs {
  at::Tensor q, k, v;
};

/// Computes the inputs of attention: the three projections and the rotation.
class TITAN_API AttentionInputKernel {
 public:
  virtual ~AttentionInputKernel();
  /// x (B, S, dim) -> queries and keys rotated by the positions of `batch`, and values. `rope`:
  /// null if the layer has no positions. Differentiable in x and the weights.
  virtual AttentionInputs project(const at::Tensor& x, const AttentionInputWeights& weights,
                                  Rope* rope, const Batch& batch) = 0;
};

/// x (B, S, dim) -> (B, S, dim). Children wq, wk, wv (column), wo (row). The number of heads on
/// this rank follows from the actual shapes of the weights, so a column-parallel rank computes its
/// own heads with the same code.
///
/// With sinks_init it has the parameter sinks, (num_heads). With qk_norm_eps it has children q_norm
/// and k_norm, RmsNorm over (hd). All heads share one weight, so its gradient is a partial sum if
/// ranks compute different heads. With qk_norm_spans_heads they are over (num_heads · hd) and
/// (num_kv_heads · hd), and head_norms() returns them.
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
  /// Null: the layer has no positions. Other layers may share it.
  Rope* rope() const { return rope_.get(); }
  /// Null: queries and keys are not normalised. Both or neither are null.
  RmsNorm* q_norm() const { return q_norm_; }
  RmsNorm* k_norm() const { return k_norm_; }
  /// As Linear::set_kernel and wrap_kernel.
  void set_kernel(std::string owner, std::unique_ptr<AttentionKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<AttentionKernel>& around);
  const KernelOwners& kernel_owners() const { return core_.kernel_owners(); }
  AttentionInputWeights input_weights() { return {wq_.weight(), wk_.weight(), wv_.weight()}; }
  /// Replaces the projections and the rotation, which no longer run. Throws a config Error if
  /// another plugin computes in one of them (later attempts to do so throw, too), and if
  /// has_plain_inputs() is false, because such a kernel computes no norms and biases.
  void set_input_kernel(std::string owner, std::unique_ptr<AttentionInputKernel> kernel);
  /// Whether queries, keys and values are only x times the weights and a rotation, without norms
  /// and biases.
  bool has_plain_inputs() const { return rope_ && !q_norm_ && !wq_.bias(); }
  /// `owner` wraps the computation of queries, keys and values.
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
  std::shared_ptr<Parameter> sinks_;  // null: none; the rule holds them, too
  AttentionCore core_;
  KernelSeam<AttentionInputKernel> inputs_;
};

}  // namespace titan::nn
