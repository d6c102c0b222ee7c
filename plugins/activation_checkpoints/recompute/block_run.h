// One run of a block whose activations are dropped after its forward and recomputed in its backward
// (Chen et al., 2016). A Policy chooses the results that are kept. Used by all three modes.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/core/Generator.h>
#include <titan/nn/module.h>
#include <titan/nn/saved_tensors.h>
#include <titan/nn/weight_gradients.h>
#include <titan/recompute.h>

#include "policy.h"

namespace titan::recompute {

/// Settings of all blocks of a model part.
struct Settings {
  bool early_stop = false;         ///< end the recomputation once backward has all tensors
  bool preserve_rng_state = true;  ///< recompute with the same random numbers
  bool checks_determinism = true;  ///< compare recomputed shapes and dtypes
  bool debug = false;              ///< log once what each block keeps
  c10::Device device = c10::kCPU;  ///< where the block computes
};

/// The part of a block that does not change between runs.
struct Block {
  std::string name;
  Settings settings;
  std::shared_ptr<const Policy> policy;
  std::vector<nn::Parameter*> parameters;
  bool was_described = false;
};

/// Drops the tensors that autograd saves in the block's forward, except the block's input, its
/// parameters, the batch and results that the policy keeps. The block runs again when backward
/// unpacks the first dropped tensor. Kept alive by the graph.
class BlockRun final : public nn::SavedTensorHooks,
                       public RecomputeScope,
                       public std::enable_shared_from_this<BlockRun> {
 public:
  BlockRun(std::shared_ptr<Block> block, const at::Tensor& input, const Batch& batch,
           nn::Next forward);
  ~BlockRun() override;

  /// The block's first run.
  at::Tensor forward(const at::Tensor& input);

  /// The dropped tensor number `index`; the first call runs the block again.
  at::Tensor take(size_t index);

  std::unique_ptr<nn::SavedTensor> pack(const at::Tensor& tensor) override;
  std::vector<at::Tensor> run(const Operation& operation, const Compute& compute) override;
  bool runs_again() const override { return pass_ == Pass::again; }

 private:
  struct Shape {
    std::vector<int64_t> sizes, strides;
    at::ScalarType dtype = at::kFloat;
  };
  struct Result {
    Operation operation;
    std::vector<at::Tensor> kept;    // empty: recomputed
    std::vector<uint32_t> versions;  // of `kept`
    std::vector<Shape> shapes;
    size_t num_saved_before = 0;  // tensors saved by the block before the operation
  };
  enum class Pass { first, again };

  static Shape shape_of(const at::Tensor& tensor);
  bool is_at_hand(const at::Tensor& tensor) const;
  void hold(const at::Tensor& tensor) { at_hand_.insert(tensor.storage().unsafeGetStorageImpl()); }
  bool is_needed_by_nobody(const Result& result) const;
  std::vector<at::Tensor> run_first(const Operation& operation, const Compute& compute);
  std::vector<at::Tensor> run_again(const Operation& operation, const Compute& compute);
  void save_again(const at::Tensor& tensor);
  void run_forward_again();
  void check_again_as_before() const;
  void describe() const;

  std::shared_ptr<Block> block_;
  at::Tensor input_;  // without history
  uint32_t input_version_ = 0;
  bool input_requires_grad_ = false;
  Batch batch_;
  nn::Next forward_;
  std::shared_ptr<nn::WeightGradientQueue> weight_gradients_;
  std::vector<at::Tensor> generator_states_;

  Pass pass_ = Pass::first;
  std::unordered_set<const c10::StorageImpl*> at_hand_;  // memory that lives until backward anyway
  std::vector<Operation> operations_;                    // of this pass
  std::vector<Result> results_;                          // by operation
  std::vector<Shape> dropped_;                           // of the first pass
  size_t num_saved_ = 0;                                 // in the first pass, dropped or not
  std::vector<at::Tensor> again_;                        // recomputed tensors, by dropped tensor
  bool is_made_again_ = false;
};

}  // namespace titan::recompute
