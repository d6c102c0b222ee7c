// Key functions of the interfaces that use torch: one vtable and one type_info each in the process.
#include <titan/compile_backend.h>
#include <titan/device.h>
#include <titan/device_graphs.h>
#include <titan/error.h>
#include <titan/fault_tolerance/replicas.h>
#include <titan/host_collectives.h>
#include <titan/loss.h>
#include <titan/memory_history.h>
#include <titan/model.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/step_module.h>
#include <titan/observe.h>
#include <titan/optimizer.h>
#include <titan/reference_loss.h>
#include <titan/scales_gradients.h>
#include <titan/sequence_loss.h>
#include <titan/step.h>
#include <titan/transform.h>
#include <titan/watcher.h>
#include <titan/watcher_state.h>

namespace titan {

Device::~Device() = default;
Loss::~Loss() = default;
RowsLoss SequenceLoss::of_rows(const at::Tensor&, const at::Tensor&) {
  fail(ErrorKind::internal, "of_rows was called on a loss of sequences");
}
ComparesWithReference::~ComparesWithReference() = default;
RowsLoss DistillationLoss::of_rows(const at::Tensor&, const at::Tensor&) {
  fail(ErrorKind::internal, "of_rows was called on a loss that needs a reference");
}
Model::~Model() = default;
ModelTransform::~ModelTransform() = default;
CompileBackend::~CompileBackend() = default;
BatchSplitter::~BatchSplitter() = default;
StepMember::~StepMember() = default;
nn::StepModule::~StepModule() = default;
std::shared_ptr<AuxiliaryLosses> StepBatches::auxiliary_losses() const {
  return std::make_shared<AuxiliaryLosses>(gradient_scale / static_cast<double>(num_valid_tokens));
}
StepExecutor::~StepExecutor() = default;
at::Tensor StepExecutor::logits(const Batch&) {
  fail(ErrorKind::plugin,
       "the executor of this job cannot compute logits: it does not implement "
       "StepExecutor::logits");
}
ExecutorWrapper::~ExecutorWrapper() = default;
GradientReducer::~GradientReducer() = default;
AfterOptimizerStep::~AfterOptimizerStep() = default;
ExportTransform::~ExportTransform() = default;
TensorObserver::~TensorObserver() = default;
HostCollectives::~HostCollectives() = default;
ReplicaRun::~ReplicaRun() = default;
ReplicaMember::~ReplicaMember() = default;
DeviceGraph::~DeviceGraph() = default;
DeviceGraphs::~DeviceGraphs() = default;
ScalesGradients::~ScalesGradients() = default;
HostWork::~HostWork() = default;
WatcherState::~WatcherState() = default;
MemoryListener::~MemoryListener() = default;
MemoryHistory::~MemoryHistory() = default;
void MemoryHistory::set_memory_label(const std::string&) {}
std::string MemoryHistory::memory_snapshot() {
  return {};
}
Optimizer::~Optimizer() = default;
WatcherLog::~WatcherLog() = default;
Watcher::~Watcher() = default;
void Watcher::match(ModelPart&) {}
void Watcher::attach(ModelPart&) {}
std::vector<StepMember*> Watcher::members() {
  return {};
}
std::vector<StepMember*> Watcher::late_members() {
  return {};
}
GradientReducer* Watcher::follower() {
  return nullptr;
}
ExecutorWrapper* Watcher::wrapper() {
  return nullptr;
}
void Watcher::start(const WatcherStart&) {}
void Watcher::before_step(int64_t) {}
void Watcher::report(int64_t) {}
bool Watcher::validates(int64_t) const {
  return false;
}
void Watcher::validate(int64_t) {}
void Watcher::after_step(int64_t) {}
void Watcher::failed(int64_t) noexcept {}
void Watcher::finish(int64_t) noexcept {}

}  // namespace titan
