// Activation checkpointing modes `full` and `selective`: blocks keep little of their forward and
// run again in their backward.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/transform.h>

#include "block_run.h"

namespace titan::recompute {

struct CommonOptions {
  bool early_stop = false;
  bool preserve_rng_state = true;
  std::string determinism_check = "default";
  bool debug = false;
};

struct SelectiveOptions : CommonOptions {
  std::string selective_ac_option = "2";
  std::vector<std::string> per_op_sac_force_recompute_mm_shapes_by_fqns = {"moe.router.gate"};
};

/// Every block keeps only its input.
class Full final : public ActivationCheckpoint {
 public:
  Full(const CommonOptions& options, TransformContext) : options_(options) {}
  Phase phase() const override { return Phase::recompute; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  CommonOptions options_;
};

/// Every n-th block keeps only its input; or, with "op", every block keeps its costly results.
/// Blocks are counted over all stages that a pipeline rank holds.
class Selective final : public ActivationCheckpoint {
 public:
  /// Throws a config Error unless the option is a number or "op".
  Selective(const SelectiveOptions& options, TransformContext);
  Phase phase() const override { return Phase::recompute; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  SelectiveOptions options_;
  size_t every_ = 0;  // 0: "op"
};

/// The layers that are blocks, in order. Throws a config Error if there are none, except on a rank
/// of a pipeline.
std::vector<Layer*> blocks_of(ModelPart& part, const TransformContext& context);

/// Wraps `layer`, so that each forward runs as a BlockRun.
void checkpoint(Layer& layer, const CommonOptions& options, std::shared_ptr<const Policy> policy,
                c10::Device device);

}  // namespace titan::recompute
