// The parallelism `replicas`: trains with the same ranks of other replica groups, whose number may
// change between steps.
#pragma once

#include <cstdint>

#include <titan/fault_tolerance/replicas.h>
#include <titan/transform.h>

#include "group_link.h"

namespace titan::replicas {

struct ReplicaOptions : GroupLinkOptions {
  Bytes bucket_size{25 * 1024 * 1024};
};

/// A group that loses another one in a step begins the step anew with the remaining groups, which
/// divide the rows of the global batch among themselves. A group that joins takes its state from
/// one that trains. Gradients are summed over groups after data parallelism inside of the group has
/// summed them, with the normaliser of the whole global batch.
class Replicas final : public Parallelism,
                       public GradientReducer,
                       public StepMember,
                       public ReplicaMember {
 public:
  Replicas(const ReplicaOptions& options, const TransformContext& context);

  Phase phase() const override { return Phase::data; }
  void apply(ModelPart& part, const TransformContext& context) override;

  void begin_step() override {}
  void start_microbatch(bool) override {}
  void finish_gradients() override;

  void commit(const Step& step) override { link_.count(step.number); }
  void skip(const Step& step) override { link_.count(step.number); }

  void join(ReplicaRun& run, dist::Mesh& mesh) override;
  bool between_steps() override { return link_.meet(); }
  Judgement agree(const Step& step, Judgement judgement) override;
  void failed() noexcept override { link_.failed(); }

 private:
  ReplicaOptions options_;
  ModelPart* part_ = nullptr;
  GroupLink link_;
  bool is_joined_ = false;
};

}  // namespace titan::replicas
