#include <titan/nn/saved_tensors.h>

#include <atomic>
#include <mutex>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <titan/error.h>
#include <titan/nn/anomaly.h>

namespace titan::nn {
namespace {

thread_local SavedTensorHooks* current_hooks = nullptr;
std::atomic<MakeAnomalyMetadata> make_metadata = nullptr;

/// Adapts one SavedTensor to autograd's interface.
class Hook final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hook(SavedTensorHooks& hooks) : hooks_(hooks) {}
  void call_pack_hook(const at::Tensor& tensor) override { saved_ = hooks_.pack(tensor); }
  at::Tensor call_unpack_hook() override { return saved_->unpack(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  SavedTensorHooks& hooks_;  // used only while packing
  std::unique_ptr<SavedTensor> saved_;
};

/// LibTorch asks its autograd engine for default saved-tensor hooks and for anomaly mode's
/// metadata; LibTorch's own engine has neither.
class HookedEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (!current_hooks) return nullptr;
    return std::make_unique<Hook>(*current_hooks);
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    const MakeAnomalyMetadata make = make_metadata;
    return make ? make() : Engine::make_anomaly_metadata();
  }
};

torch::autograd::Engine& hooked_engine() {
  static HookedEngine* engine = new HookedEngine;  // never destroyed: its threads may outlive main
  return *engine;
}

void install_engine() {
  static std::once_flag once;
  std::call_once(once, [] { torch::autograd::set_default_engine_stub(&hooked_engine); });
}

}  // namespace

SavedTensor::~SavedTensor() = default;
SavedTensorHooks::~SavedTensorHooks() = default;

SavedTensorScope::SavedTensorScope(SavedTensorHooks* hooks)
    : before_(std::exchange(current_hooks, hooks)) {
  install_engine();
}

SavedTensorScope::~SavedTensorScope() {
  current_hooks = before_;
}

void set_anomaly_metadata(MakeAnomalyMetadata make) {
  make_metadata = make;
  install_engine();
}

}  // namespace titan::nn
