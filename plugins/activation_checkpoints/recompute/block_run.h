// One run of a block whose activations are dropped after its forward and made again in its
// backward. Method: Chen et al., 2016; which results are kept in between is the policy's choice.
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

/// How all blocks of a part are recomputed.
struct Settings {
  bool early_stop = false;         ///< end once everything that backward needs exists
  bool preserve_rng_state = true;  ///< draw the same random numbers again
  bool checks_determinism = true;  ///< what is made again must have the shapes and types of before
  bool debug = false;              ///< log what each block keeps, once
  c10::Device device = c10::kCPU;  ///< where the block computes
};

/// A block: what does not change between its runs.
struct Block {
  std::string name;
  Settings settings;
  std::shared_ptr<const Policy> policy;
  std::vector<nn::Parameter*> parameters;
  bool was_described = false;
};

/// What autograd saves in the block's forward is dropped, but for its input, its parameters, the
/// batch and the results that the policy keeps; the first tensor that backward asks for makes the
/// block run again. Kept alive by the graph.
class BlockRun final : public nn::SavedTensorHooks,
                       public RecomputeScope,
                       public std::enable_shared_from_this<BlockRun> {
 public:
  BlockRun(std::shared_ptr<Block> block, const at::Tensor& input, const Batch& batch,
           nn::Next forward);
  ~BlockRun() override;

  /// The block's first run.
  at::Tensor forward(const at::Tensor& input);

  /// The dropped tensor number `index`, made again when it is the first that is asked for.
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
    std::vector<at::Tensor> kept;    // empty: computed again
    std::vector<uint32_t> versions;  // of `kept`
    std::vector<Shape> shapes;
    size_t num_saved_before = 0;  // tensors that the block had saved when it ran
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
  std::unordered_set<const c10::StorageImpl*> at_hand_;  // memory that is there in backward anyway
  std::vector<Operation> operations_;                    // of this pass
  std::vector<Result> results_;                          // by operation
  std::vector<Shape> dropped_;                           // of the first pass
  size_t num_saved_ = 0;                                 // in the first pass, dropped or not
  std::vector<at::Tensor> again_;                        // by dropped tensor
  bool is_made_again_ = false;
};

}  // namespace titan::recompute
