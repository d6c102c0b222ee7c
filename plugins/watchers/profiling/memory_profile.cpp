#include "memory_profile.h"

#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/optimizer_state.h>
#include <titan/shown_text.h>
#include <torch/csrc/autograd/engine.h>

#include "memory_snapshot.h"
#include "memory_table.h"
#include "module_paths.h"

namespace titan::profiling {
namespace {

constexpr size_t kMaxEntries = 100000;  // torchtitan's

MemoryHistory& history_of(Device& device) {
  auto* history = dynamic_cast<MemoryHistory*>(&device);
  TITAN_CHECK(history, config,
              "profiling.enable_memory_snapshot = true needs a device that reports allocations "
              "(titan/memory_history.h), and this device does not; remove the key");
  return *history;
}

uint64_t address_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  return reinterpret_cast<uint64_t>(tensor.storage().data());
}

/// The forward of one layer, also when it throws.
class ForwardScope {
 public:
  explicit ForwardScope(MemoryLog& log) : log_(log) { log_.begin_forward(); }
  ~ForwardScope() { log_.end_forward(); }
  ForwardScope(const ForwardScope&) = delete;

 private:
  MemoryLog& log_;
};

}  // namespace

MemoryProfile::MemoryProfile(MemoryProfileOptions options, Device& device, const dist::Mesh& mesh)
    : options_(std::move(options)),
      history_(&history_of(device)),
      rank_(mesh.rank()),
      log_(*new MemoryLog(kMaxEntries)),
      labels_{"", ""} {  // for the log's first two places
  MemoryLog::enter(MemoryLog::kOutside);
  log_.follow(&mesh.recorder());
  history_->start_history(log_, kMaxEntries);
}

MemoryProfile::~MemoryProfile() {
  log_.follow(nullptr);
}

/// Sets the place of this thread and returns the previous one.
int32_t MemoryProfile::enter(int32_t place) {
  history_->set_memory_label(labels_[static_cast<size_t>(place)]);
  return MemoryLog::enter(place);
}

/// Sets the place of this thread and restores the previous one at the end.
class MemoryProfile::PlaceScope {
 public:
  PlaceScope(MemoryProfile& profile, int32_t place)
      : profile_(profile), before_(profile_.enter(place)) {}
  ~PlaceScope() { profile_.enter(before_); }
  PlaceScope(const PlaceScope&) = delete;

 private:
  MemoryProfile& profile_;
  int32_t before_;
};

int32_t MemoryProfile::add_pass(const std::string& path, const std::string& layer,
                                const char* name) {
  MemoryPlace place{.layer = layer, .modules = {path}, .pass = name};
  if (path != layer) place.modules.push_back(layer);
  labels_.push_back(path + ", " + name);
  return log_.add_place(std::move(place));
}

void MemoryProfile::attach(ModelPart& part) {
  visit_layers_and_children(part, [&](const ModulePlace& place, nn::Module& module) {
    if (place.is_layer()) layers_.push_back(place.layer);
    const int32_t forward = add_pass(place.path, place.layer, "forward");
    const int32_t backward = add_pass(place.path, place.layer, "backward");
    go_around(module, forward, backward, place.is_layer());
    if (!place.is_layer()) return;
    const int32_t own = add_pass(place.path, place.layer, "held");
    module.visit_parameters(
        [&](nn::Parameter& parameter) { place_of_parameter_.emplace(&parameter, own); });
  });
  watch_gradients(part);
}

/// The backward of a module begins with the gradient of its output. It lasts until the backward of
/// another module begins, or to the end of the pass.
void MemoryProfile::enter_backward(int32_t place) {
  if (!is_in_backward_.exchange(true))
    torch::autograd::Engine::get_default_engine().queue_callback([this] {
      is_in_backward_ = false;
      enter(MemoryLog::kOutside);
    });
  enter(place);
}

void MemoryProfile::go_around(nn::Module& module, int32_t forward, int32_t backward,
                              bool is_layer) {
  module.wrap([this, forward, backward, is_layer](const at::Tensor& x, const Batch& batch,
                                                  const nn::Next& next) {
    const PlaceScope place(*this, forward);
    std::optional<ForwardScope> scope;
    if (is_layer) scope.emplace(log_);
    at::Tensor y = next(x, batch);
    if (y.requires_grad() && !y.is_leaf())
      y.register_hook([this, backward](const at::Tensor&) { enter_backward(backward); });
    return y;
  });
}

/// Gradients of unsharded parameters count as gradients too, until they are reduced to shards.
void MemoryProfile::watch_gradients(ModelPart& part) {
  for (nn::Parameter* parameter : part.parameters())
    parameter->on_gradient([this](nn::Parameter& p) {
      relabel(p.value().grad(), MemoryUse::gradients, p);
      if (!p.value().is_same(p.shard())) relabel(p.grad(), MemoryUse::gradients, p);
    });
}

void MemoryProfile::relabel(const at::Tensor& tensor, MemoryUse use,
                            const nn::Parameter& parameter) {
  const uint64_t address = address_of(tensor);
  if (address == 0) return;
  const auto place = place_of_parameter_.find(&parameter);
  log_.relabel(address, use,
               place == place_of_parameter_.end() ? MemoryLog::kOutside : place->second);
}

void MemoryProfile::begin_step(ModelPart& part, Optimizer* optimizer) {
  for (const nn::Parameter* parameter : part.parameters())
    relabel(parameter->shard(), MemoryUse::parameters, *parameter);
  if (auto* stateful = dynamic_cast<StatefulOptimizer*>(optimizer))
    stateful->visit_state(
        [&](nn::Parameter& parameter, const OptimizerState&, const at::Tensor& state) {
          relabel(state, MemoryUse::optimizer_states, parameter);
        });
  if (num_steps_ == 1) log_.reset_peak();  // step 1 has no optimizer states yet
}

void MemoryProfile::end_step(int64_t step) {
  enter(MemoryLog::kOutside);
  ++num_steps_;
  if (step % options_.freq == 0) write("iteration_" + std::to_string(step));
}

void MemoryProfile::on_error(int64_t last_step) noexcept {
  is_in_backward_ = false;
  enter(MemoryLog::kOutside);
  if (log_.was_refused()) write("iteration_" + std::to_string(last_step) + "_exit");
}

void MemoryProfile::write(const std::string& iteration) {
  const std::filesystem::path folder = options_.folder / iteration;
  const std::string rank = "rank" + std::to_string(rank_);
  const std::string table = memory_table(log_.peak(), layers_);
  if (!std::exchange(was_shown_, true) && rank_ == 0) log::info("memory of rank 0: " + table);
  try {
    std::filesystem::create_directories(folder);
    std::string pickle = history_->memory_snapshot();
    if (pickle.empty()) pickle = to_memory_snapshot(log_.copy(), kMaxEntries);
    write_text_atomically(folder / (rank + "_memory_snapshot.pickle"), pickle);
    write_text_atomically(folder / (rank + "_memory_peak.txt"), table);
  } catch (const std::exception& error) {
    if (std::exchange(has_failed_, true)) return;
    log::warn("the memory snapshot in " + in_quotes(folder.string()) + " could not be written: " +
              error.what() + "; training continues, later failures are not reported");
  }
}

}  // namespace titan::profiling
