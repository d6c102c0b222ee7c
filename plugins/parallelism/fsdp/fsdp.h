// Fully sharded data parallelism: each rank keeps a shard of every parameter, of its gradient and
// of its optimizer state. Whole parameters exist only while they are used.
#pragma once

#include <memory>
#include <string>

#include <titan/device_graphs.h>
#include <titan/transform.h>

#include "options.h"

namespace titan::fsdp {

/// Shards parameters over the mesh's "fsdp" ranks and reduces gradients over these and over
/// "dp_replicate" (hybrid sharding). A parameter that is cut over some of these ranks already is
/// sharded over the rest of them; a parameter with an owner stays unchanged. Also casts parameters
/// and inputs to the dtype of the computation, so it is used with one rank too. Method: FSDP2 of
/// PyTorch; Zhao et al., 2023.
class Fsdp final : public Parallelism, public GradientReducer, public HostWork {
 public:
  Fsdp(const FsdpOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::data; }
  void apply(ModelPart& part, const TransformContext& context) override;
  void begin_step() override { reducer_->begin_step(); }
  void start_microbatch(bool is_last) override { reducer_->start_microbatch(is_last); }
  void finish_gradients() override { reducer_->finish_gradients(); }
  std::string host_work() const override {
    return options_.cpu_offload ? "weights are kept in host memory" : "";
  }

 private:
  FsdpOptions options_;
  std::shared_ptr<GradientReducer> reducer_;  // shared with the layers and their graphs
};

}  // namespace titan::fsdp
