#include "core/train/assembly/replica_run.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/error.h>

#include "core/checkpoint/rank_state.h"
#include "core/checkpoint/state.h"
#include "core/fault_tolerance/peer_state.h"
#include "core/train/assembly/run.h"

namespace titan::core {
namespace {

/// What may differ between the groups of a run.
constexpr std::string_view kOwn[] = {
    "fault_tolerance.replica_id", "job.", "metrics.", "comm.", "profiling.", "plugins.",
    "checkpoint.folder"};

Value as_value(const TrainState& state) {
  return Value::map({{"step", state.step},
                     {"tokens_seen", state.tokens_seen},
                     {"tokens_learned", state.tokens_learned},
                     {"lr_step", state.lr_step},
                     {"loss_scale", state.loss_scale},
                     {"loss_scale_steps", state.loss_scale_steps}});
}

TrainState state_from(const Value& value) {
  TrainState state;
  state.step = value.at("step").as_integer();
  state.tokens_seen = value.at("tokens_seen").as_integer();
  state.tokens_learned = value.at("tokens_learned").as_integer();
  state.lr_step = value.at("lr_step").as_integer();
  state.loss_scale = value.at("loss_scale").as_number();
  state.loss_scale_steps = value.at("loss_scale_steps").as_integer();
  return state;
}

class RunOfGroup final : public ReplicaRun {
 public:
  RunOfGroup(Run& run, const JobConfig& config, Value identity, std::string start)
      : run_(run), config_(config), identity_(std::move(identity)), start_(std::move(start)) {}

  int64_t step() const override { return run_.state.step; }
  std::string start() const override { return start_; }
  Value identity() const override { return identity_; }
  int64_t num_rows() const override { return config_.layout.global_batch_size; }
  int64_t rows_per_round() const override {
    return config_.training.local_batch_size * run_.mesh.grid().batch();
  }

  void keep_position() override { position(); }
  void read_rows(int64_t first, int64_t count) override {
    const int64_t own = count / run_.mesh.grid().batch();
    run_.loader->read_rows(first + own * run_.mesh.batch_rank(), own, position());
  }
  Value data_position() const override { return position().to_value(); }
  void add_data_position(const Value& other) override {
    position();
    merge(FeedState::from_value(other).streams);
  }

  void give(const dist::Group& group, int peer) override {
    Value numbers = Value::map({{"state", as_value(run_.state)},
                                {"position", data_position()},
                                {"random", random_state(run_.device->device())}});
    const Lineage& lineage = run_.checkpoints->lineage();
    if (lineage.is_known()) numbers["lineage"] = to_value(lineage);
    give_state(tensors(), numbers, group, peer, run_.device->device());
  }
  void take(const dist::Group& group, int peer) override {
    run_.checkpoints->before_update();  // a save in progress may still copy the state
    const Value numbers = take_state(tensors(), group, peer, run_.device->device());
    run_.state = state_from(numbers.at("state"));
    position_ = FeedState::from_value(numbers.at("position"));
    position_step_ = run_.state.step;
    restore_random_state(numbers.at("random"), run_.device->device());
    const Value* lineage = numbers.find("lineage");
    if (lineage && config_.fault_tolerance.shares_checkpoints())
      run_.checkpoints->set_lineage(
          parse_lineage(Members(*lineage, "another replica group", "lineage.")));
    weights_have_changed();
  }

  void write_checkpoints(bool writes) override { run_.checkpoints->set_writes(writes); }
  void change_weights(const std::function<void()>& change) override {
    run_.checkpoints->before_update();
    change();
    weights_have_changed();
  }

 private:
  void weights_have_changed() {
    for (AfterOptimizerStep* after : run_.after_optimizer_step) after->after_optimizer_step();
  }
  /// The loader is further while a step is to be begun anew.
  const FeedState& position() const {
    if (std::exchange(position_step_, run_.state.step) == run_.state.step) return position_;
    std::vector<FeedState::StreamPosition> known = std::move(position_.streams);
    position_ = run_.loader->state();
    merge(std::move(known));
    return position_;
  }
  /// Of two positions of a stream, the further one counts.
  void merge(std::vector<FeedState::StreamPosition> streams) const {
    std::map<int64_t, size_t> places;
    for (size_t i = 0; i < position_.streams.size(); ++i)
      places.emplace(position_.streams[i].stream, i);
    for (FeedState::StreamPosition& stream : streams) {
      const auto [place, is_new] = places.emplace(stream.stream, position_.streams.size());
      if (is_new)
        position_.streams.push_back(std::move(stream));
      else if (stream.next > position_.streams[place->second].next)
        position_.streams[place->second] = std::move(stream);
    }
  }

  std::vector<StateTensor> tensors() const {
    std::vector<StateTensor> tensors = weights_of(*run_.part);
    const std::vector<StateTensor> states = states_of(*run_.optimizer);
    tensors.insert(tensors.end(), states.begin(), states.end());
    return tensors;
  }

  Run& run_;
  const JobConfig& config_;
  Value identity_;
  std::string start_;
  mutable FeedState position_;
  mutable int64_t position_step_ = -1;
};

/// The same state for the same settings.
std::string text_of(const StartPoint& start, uint64_t seed) {
  if (start.kind == StartPoint::Kind::fresh) return "seed " + std::to_string(seed);
  if (start.kind != StartPoint::Kind::checkpoint) return "weights of " + start.folder.string();
  const Lineage& lineage = start.manifest.lineage;
  return "checkpoint " + lineage.job + " branch " + std::to_string(lineage.branch) + " step " +
         std::to_string(start.manifest.step) + " written " + std::to_string(start.manifest.time);
}

}  // namespace

std::unique_ptr<ReplicaRun> make_replica_run(Run& run, const JobConfig& config,
                                             const RunIdentity& identity, const StartPoint& start) {
  Value shared = Value::list();
  for (const auto& [name, value] : identity)
    if (std::none_of(std::begin(kOwn), std::end(kOwn),
                     [&](std::string_view own) { return name.starts_with(own); }))
      shared.as_list().push_back(Value::map({{"name", name}, {"value", value}}));
  return std::make_unique<RunOfGroup>(run, config, std::move(shared), text_of(start, run.seed));
}

}  // namespace titan::core
