// The parallelism `semi_sync`: replica groups that train alone and meet every few steps, to average
// their weights (LocalSGD) or to take an outer step with their average change (DiLoCo).
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <titan/fault_tolerance/replicas.h>
#include <titan/optimizer_state.h>
#include <titan/schema.h>
#include <titan/transform.h>

#include "../replicas/group_link.h"
#include "quantized_rows.h"

namespace titan::semi_sync {

enum class Method { local_sgd, diloco };

struct SemiSyncOptions : replicas::GroupLinkOptions {
  Method method = Method::local_sgd;
  int64_t sync_steps = 5;
  bool should_quantize = false;
  RowType quantized_type = RowType::int8;
  int64_t delay = 0;
  double alpha = 0;
  int64_t num_fragments = 1;
  std::vector<std::vector<std::string>> modules_of_fragments;
  double outer_lr = 0.7;
  double outer_momentum = 0.9;
  bool nesterov = true;
  Bytes bucket_size{25 * 1024 * 1024};
};

/// Between two meetings each group is a job of its own: it trains on its rows of the global batch
/// with its own optimizer. One fragment of the model is synchronised at a time, each every
/// `sync_steps` steps:
///
/// - `delay` steps before it is due the groups meet, and the exchange runs during further steps;
/// - when it is due they vote. After a yes all have equal weights in this fragment, except for the
///   share `alpha` of their own. After a no DiLoCo returns to the common weights, LocalSGD keeps
///   its own, and the same fragment is tried again.
///
/// Averages weigh each group by the tokens that it has learned since the fragment's weights were
/// equal. A group that has just taken over the state of another weighs nothing.
class SemiSync final : public Parallelism,
                       public StepMember,
                       public AfterOptimizerStep,
                       public StatefulOptimizer,
                       public ReplicaMember {
 public:
  SemiSync(const SemiSyncOptions& options, const TransformContext& context);
  ~SemiSync() override;

  Phase phase() const override { return Phase::data; }
  void apply(ModelPart& part, const TransformContext& context) override;

  bool undoes_steps() const override { return false; }
  void reduced(Step& step) override { loss_ = step.loss.normalized_sum; }
  void commit(const Step& step) override { count(step); }
  void skip(const Step& step) override { count(step); }
  void after_optimizer_step() override;

  void join(ReplicaRun& run, dist::Mesh& mesh) override;
  bool between_steps() override;
  void failed() noexcept override { link_.failed(); }
  Judgement agree(const Step&, Judgement judgement) override { return judgement; }
  bool trains_alone() const override { return true; }
  std::vector<Scalar> scalars() override;

 private:
  /// What has happened since the start of the run. Saved as one tensor for each parameter.
  struct Counters {
    int64_t lineage = 0;      ///< groups with equal ones have the same common weights; 0: unknown
    int64_t num_syncs = 0;    ///< that a vote has accepted
    int64_t synced_step = 0;  ///< of the last vote, or of the start
    bool is_sent = false;     ///< an exchange has begun
    std::vector<int64_t> tokens;  ///< of each fragment, learned since its weights were equal
  };

  void count(const Step& step);
  bool synchronise();
  bool meet();
  void send();
  void exchange();
  void start_exchange();
  void finish();
  void take_average(size_t fragment);
  void return_to_common(size_t fragment);
  void average_loss();
  void read_counters();
  void write_counters();
  std::string lineage_text() const;
  int64_t steps_since_sync() const;
  int64_t steps_per_sync() const { return options_.sync_steps / num_fragments_; }
  size_t fragment() const;
  bool is_diloco() const { return options_.method == Method::diloco; }

  SemiSyncOptions options_;
  Device& device_;
  replicas::GroupLink link_;
  int64_t num_fragments_ = 1;
  std::vector<nn::Parameter*> parameters_;
  std::vector<std::vector<size_t>> of_fragment_;  // indices into parameters_
  OptimizerState* saved_counters_ = nullptr;
  OptimizerState* common_ = nullptr;    // DiLoCo: weights after the last outer step
  OptimizerState* momentum_ = nullptr;  // null without momentum
  OptimizerState* sent_ = nullptr;      // null without delay: the change that is being averaged

  ReplicaRun* run_ = nullptr;
  dist::Mesh* mesh_ = nullptr;
  Counters counters_;
  bool has_met_ = false;
  std::string epoch_;                      // when the groups last met
  bool changes_weights_ = false;           // by this plugin; then after_optimizer_step does nothing
  std::vector<at::Tensor> in_exchange_;    // of the fragment: this group's share, then the average
  std::future<void> exchange_;             // valid from send to finish
  double loss_ = 0;                        // of the last step, on this rank
  int64_t step_tokens_ = 0;                // of the last step, of this group
  std::optional<double> all_groups_loss_;  // of the last step, if the groups have met in it
  int64_t logged_bytes_ = 0;
};

}  // namespace titan::semi_sync
