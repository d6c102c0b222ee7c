// The last layer: normalisation and projection to the vocabulary, with the loss computed in chunks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <titan/loss.h>
#include <titan/nn/kernel_seam.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/rms_norm.h>
#include <titan/ops/chunked_loss.h>

namespace titan::nn {

/// Computes the head's projection and loss; tensor parallelism replaces it.
class TITAN_API HeadKernel {
 public:
  virtual ~HeadKernel();
  /// x (..., dim) -> (..., vocab) in x's dtype.
  virtual at::Tensor logits(const at::Tensor& x, Parameter& weight) = 0;
  /// x (N, dim), labels (N) -> the sum of the token losses, a scalar in fp32 (double for a double
  /// x).
  virtual at::Tensor loss_sum(const at::Tensor& x, Parameter& weight, const at::Tensor& labels) = 0;
  /// The same with a loss other than the cross entropy, through ops::chunked_loss. The chunks that
  /// `loss` receives hold the whole vocabulary.
  virtual at::Tensor loss_sum_by(const ops::ChunkLoss& loss, const at::Tensor& x, Parameter& weight,
                                 const at::Tensor& labels) = 0;
};

/// The loss that a head computes instead of the cross entropy.
struct HeadLoss {
  std::shared_ptr<Loss> loss;  ///< null: the cross entropy; shared with readers of its names
  /// [each chunk] Receives the sums of the loss's parts, scalars without a graph.
  std::function<void(const std::vector<at::Tensor>& parts)> take_parts;
};

struct OutputHeadOptions {
  int64_t dim = 0;
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  Init init;
  /// The embedding's weight if head and embedding are tied; otherwise null, and the head owns
  /// "output.weight".
  std::shared_ptr<Parameter> tied_weight;
};

/// x (B, S, dim) -> logits (B, S, vocab) in fp32. If the batch has labels, the **sum** of the token
/// losses instead: a scalar, fp32, computed without storing the full logits. The loss is the cross
/// entropy unless set_loss sets another one. Parameters "norm.weight" and
/// "output.weight".
class TITAN_API OutputHead final : public Module {
 public:
  explicit OutputHead(const OutputHeadOptions& options);

  ~OutputHead() override;

  RmsNorm& norm() { return norm_; }
  Parameter& weight() { return *weight_; }
  /// As Linear::set_kernel and wrap_kernel.
  void set_kernel(std::string owner, std::unique_ptr<HeadKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<HeadKernel>& around);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  std::string computed_by() const override { return kernel_.owners().text(); }
  WeightLayout layout() const { return WeightLayout::vocab; }
  /// [before the first forward]
  void set_loss(HeadLoss loss) { loss_ = std::move(loss); }
  const std::shared_ptr<Loss>& loss() const { return loss_.loss; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  RmsNorm& norm_;
  std::shared_ptr<Parameter> weight_;
  KernelSeam<HeadKernel> kernel_;
  HeadLoss loss_;
};

}  // namespace titan::nn
