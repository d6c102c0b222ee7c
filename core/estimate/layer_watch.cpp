#include "core/estimate/layer_watch.h"

#include <set>

#include "core/runtime/tensors/meta_memory.h"

namespace titan::core {

struct LayerWatch::State {
  const dist::Recorder& recorder;
  std::vector<PipelineAction> forwards;  // of this pipeline rank; empty without a pipeline
  int num_microbatches = 1;              // of a round
  std::vector<WatchedLayer> layers;

  // progress of the step
  std::vector<int64_t> num_forwards;  // by layer
  int64_t num_forward_actions = 0;
  size_t last_layer = 0;
  std::string last_activity;

  std::string name(size_t layer, int64_t microbatch) const {
    return layers[layer].name + ", microbatch " + std::to_string(microbatch);
  }

  /// The number of the microbatch within the step.
  int64_t enter_forward(size_t layer) {
    layers[layer].has_memory = true;
    if (forwards.empty()) return num_forwards[layer]++;
    std::string activity = recorder.activity();
    const bool is_next_action =
        num_forward_actions == 0 || activity != last_activity || layer <= last_layer;
    if (is_next_action) ++num_forward_actions;
    last_activity = std::move(activity);
    last_layer = layer;
    const auto num_done = static_cast<size_t>(num_forward_actions - 1);
    const PipelineAction& action = forwards[num_done % forwards.size()];
    layers[layer].stage = action.stage;
    return static_cast<int64_t>(num_done / forwards.size()) * num_microbatches + action.microbatch;
  }
};

namespace {

std::vector<WatchedLayer> watched_layers(ModelPart& part) {
  std::vector<WatchedLayer> layers;
  std::set<const nn::Parameter*> seen;
  for (Layer& layer : part.layers()) {
    WatchedLayer watched{.name = layer.name};
    layer.module->visit_parameters([&](nn::Parameter& parameter) {
      if (!parameter.is_state() && seen.insert(&parameter).second)
        watched.parameters += parameter.shard().numel();
    });
    layers.push_back(std::move(watched));
  }
  return layers;
}

}  // namespace

LayerWatch::LayerWatch(ModelPart& part, const dist::Recorder& recorder,
                       const std::vector<PipelineAction>* actions)
    : state_(new State{.recorder = recorder, .layers = watched_layers(part)}) {
  if (actions)
    for (const PipelineAction& action : *actions) {
      if (action.kind != PipelineAction::Kind::forward) continue;
      state_->forwards.push_back(action);
      state_->num_microbatches = std::max(state_->num_microbatches, action.microbatch + 1);
    }
  start_step();
  watch_gradients(part);
  for (size_t i = 0; i < part.layers().size(); ++i)
    part.layers()[i].module->wrap(
        [state = state_, i](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          const int64_t microbatch = state->enter_forward(i);
          MetaMemory::set_place("forward of " + state->name(i, microbatch));
          const int64_t before = MetaMemory::live()[MemoryUse::activations];
          MetaMemory::ForwardScope forward;
          at::Tensor y = next(x, batch);
          forward.end();
          // a difference: earlier layers' memory may also have been freed meanwhile, as copies to
          // the host end
          state->layers[i].kept_bytes = MetaMemory::live()[MemoryUse::activations] - before;
          if (y.requires_grad())
            y.register_hook([state, i, microbatch](const at::Tensor&) {
              MetaMemory::set_place("backward of " + state->name(i, microbatch));
            });
          return y;
        });
}

/// Gradients of whole parameters also count as gradients until they are reduced to shards.
void LayerWatch::watch_gradients(ModelPart& part) {
  for (nn::Parameter* parameter : part.parameters())
    parameter->on_gradient([](nn::Parameter& p) {
      MetaMemory::relabel(p.value().grad(), MemoryUse::gradients);
      if (!p.value().is_same(p.shard())) MetaMemory::relabel(p.grad(), MemoryUse::gradients);
    });
}

void LayerWatch::start_step() {
  state_->num_forwards.assign(state_->layers.size(), 0);
  state_->num_forward_actions = 0;
  state_->last_activity.clear();
}

const std::vector<WatchedLayer>& LayerWatch::layers() const {
  return state_->layers;
}

}  // namespace titan::core
