// One stage of a pipeline on this rank: runs its layers for one microbatch at a time and keeps the
// tensors that their backward needs.
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
  /// `layers`: indices in `part`, which outlives the stage. `input_width` and `output_width`: of
  /// the stage's input and output activations (Layer::output_width); 0 at the model's begin and
  /// end.
  Stage(ModelPart& part, int index, LayerRange layers, int64_t input_width, int64_t output_width)
      : part_(part),
        index_(index),
        layers_(layers),
        input_width_(input_width),
        output_width_(output_width) {}

  int index() const { return index_; }
  bool is_first() const { return input_width_ == 0; }
  bool is_last() const { return output_width_ == 0; }

  /// Shape and dtype of the stage's input for `batch`.
  Boundary input_boundary(const Batch& batch) const { return boundary(batch, input_width_); }

  /// Discards every microbatch and makes room for `num_microbatches`.
  void start(int num_microbatches);

  /// `input`: from the stage before, undefined for the first stage. Builds the autograd graph
  /// unless gradients are disabled. `splits`: the backward will be split in two. Throws a config
  /// Error when the layers' output does not have the shape that the next stage expects.
  void forward(int microbatch, const Batch& batch, const at::Tensor& input, bool splits);
  /// The output of `forward`, detached.
  at::Tensor output(int microbatch) const;
  /// Runs the backward from `root`: a function of the last stage's output, or the output itself
  /// with its gradient `grad_output`.
  void backward(int microbatch, const at::Tensor& root, const at::Tensor& grad_output);
  /// As `backward`, without the weights' gradients as far as layers can defer them.
  void backward_input(int microbatch, const at::Tensor& root, const at::Tensor& grad_output);
  void backward_weights(int microbatch);
  /// The output with its autograd history.
  const at::Tensor& output_with_history(int microbatch) const { return at(microbatch).output; }
  /// Returns the gradient of the input and releases it here.
  at::Tensor take_input_grad(int microbatch);
  /// Frees the tensors of a microbatch that has no backward.
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
