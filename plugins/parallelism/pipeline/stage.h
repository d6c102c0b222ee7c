// One stage of a pipeline on this rank: runs its layers for one microbatch at a time and keeps what
// their backward needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/weight_gradients.h>

#include "stage_split.h"

namespace titan::pipeline {

/// The tensor that travels between two stages.
struct Boundary {
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;
};

class Stage {
 public:
  /// `layers`: places in `part`, which outlives the stage. `input_width` and `output_width`: of the
  /// activations before and behind (Layer::output_width); 0 where the model begins or ends.
  Stage(ModelPart& part, int index, LayerRange layers, int64_t input_width, int64_t output_width)
      : part_(part),
        index_(index),
        layers_(layers),
        input_width_(input_width),
        output_width_(output_width) {}

  int index() const { return index_; }
  bool is_first() const { return input_width_ == 0; }
  bool is_last() const { return output_width_ == 0; }

  /// Of what comes in for `batch`; `dtype` of the computation.
  Boundary input_boundary(const Batch& batch) const { return boundary(batch, input_width_); }

  /// Forgets every microbatch; makes room for so many.
  void start(int num_microbatches);

  /// `input`: of the stage before, undefined for the first. Gradients are recorded unless they are
  /// switched off. `splits`: the backward will come in halves. Throws a config Error when the
  /// layers' output does not have the shape that the next stage expects.
  void forward(int microbatch, const Batch& batch, const at::Tensor& input, bool splits);
  /// What `forward` gave, without history.
  at::Tensor output(int microbatch) const;
  /// The backward of `root`, a function of the last stage's output, or of the output itself with
  /// its gradient `grad_output`.
  void backward(int microbatch, const at::Tensor& root, const at::Tensor& grad_output);
  /// The same without the weights' gradients, as far as layers can put these off.
  void backward_input(int microbatch, const at::Tensor& root, const at::Tensor& grad_output);
  void backward_weights(int microbatch);
  /// The output with its history.
  const at::Tensor& output_with_history(int microbatch) const { return at(microbatch).output; }
  /// The gradient of the input, given away.
  at::Tensor take_input_grad(int microbatch);
  /// Frees what is kept for a microbatch that has no backward.
  void forget(int microbatch) { at(microbatch) = {}; }

 private:
  struct Kept {
    at::Tensor input, output, input_grad;
    std::shared_ptr<nn::WeightGradientQueue> weight_gradients;
  };
  Kept& at(int microbatch) { return kept_[static_cast<size_t>(microbatch)]; }
  const Kept& at(int microbatch) const { return kept_[static_cast<size_t>(microbatch)]; }
  Boundary boundary(const Batch& batch, int64_t width) const;
  void check_output(const at::Tensor& output, const Batch& batch) const;

  ModelPart& part_;
  int index_;
  LayerRange layers_;
  int64_t input_width_, output_width_;
  std::vector<Kept> kept_;  // by microbatch
};

}  // namespace titan::pipeline
