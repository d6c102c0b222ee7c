// The tensors of a run that a checkpoint holds, by names that do not depend on the layout. Used by
// the writer and the reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/model.h>
#include <titan/nn/parameter.h>
#include <titan/optimizer.h>

namespace titan::core {

/// One tensor as this rank holds it: a rectangle of a tensor that has a name.
struct StateTensor {
  std::string name;            ///< "layers.0.attention.wq.weight", "optim.exp_avg.<parameter>"
  std::vector<int64_t> shape;  ///< of the whole tensor; a single number is a tensor of shape [1]
  nn::Slice slice;             ///< the rectangle that `tensor` holds
  at::Tensor tensor;           ///< shares memory with the run's own
  std::vector<nn::Sharding> shardings;  ///< of the parameter that it belongs to
  bool is_whole = false;     ///< the same tensor on all ranks that hold a part of the parameter
  bool is_copy = false;      ///< another pipeline rank holds it too, and saves it
  bool keeps_dtype = false;  ///< a module's state: not converted with the weights
};

std::vector<StateTensor> weights_of(const ModelPart& part);
/// All states that the optimizer has declared, allocated where not used yet; empty without states.
/// Throws as StatefulOptimizer::visit_state.
std::vector<StateTensor> states_of(Optimizer& optimizer);
/// Single numbers are saved with shape [1]; other programs that rewrite a checkpoint may give them
/// shape []. Gives each state the shape that `index` has for it.
void follow_stored_numbers(std::vector<StateTensor>& states, const TensorIndex& index);

}  // namespace titan::core
