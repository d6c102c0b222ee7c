#include "anomaly_detection.h"

#include <memory>
#include <mutex>
#include <utility>

#include <c10/util/Exception.h>
#include <titan/compat/autograd_node.h>
#include <titan/error.h>
#include <titan/nn/anomaly.h>

namespace titan::debugging {
namespace {

using torch::autograd::AnomalyMetadata;
using torch::autograd::AnomalyMode;

/// Points to a path that the wrapper owns.
thread_local const std::string* running_module = nullptr;

/// The message of the first failed operation. Backward may run on a thread of its own.
class Failure {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = std::move(text);
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

Failure& failure() {
  static Failure one;
  return one;
}

/// Metadata of one operation, made when it is recorded. LibTorch's own keeps a stack of addresses.
class RecordedIn final : public AnomalyMetadata {
 public:
  void store_stack() override { module_ = running_module; }
  void print_stack(const std::string& operation) override {
    failure().set("operation " + operation + " was recorded in the forward of " +
                  (module_ ? "'" + *module_ + "'" : "no module: between or after the layers"));
  }
  void assign_parent(const compat::AutogradNode&) override {}

 private:
  const std::string* module_ = nullptr;
};

std::unique_ptr<AnomalyMetadata> make_metadata() {
  return std::make_unique<RecordedIn>();
}

class ModuleScope {
 public:
  explicit ModuleScope(const std::string* module)
      : before_(std::exchange(running_module, module)) {}
  ~ModuleScope() { running_module = before_; }
  ModuleScope(const ModuleScope&) = delete;

 private:
  const std::string* before_;
};

/// Evaluation, checkpoints and updates run without anomaly mode.
class ModeScope {
 public:
  ModeScope() { AnomalyMode::set_enabled(true, /*check_nan=*/true); }
  ~ModeScope() { AnomalyMode::set_enabled(false); }
  ModeScope(const ModeScope&) = delete;
};

bool is_of_a_gradient(const std::string& message) {
  return message.find("returned nan values in its") != std::string::npos;
}

}  // namespace

AnomalyDetection::AnomalyDetection() {
  nn::set_anomaly_metadata(make_metadata);
}

AnomalyDetection::~AnomalyDetection() {
  nn::set_anomaly_metadata(nullptr);
}

void AnomalyDetection::attach(ModelPart& part) {
  part.visit_modules([](const std::string& path, nn::Module& module) {
    module.wrap([name = std::make_shared<const std::string>(path)](
                    const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      const ModuleScope scope(name.get());
      return next(x, batch);
    });
  });
}

StepLoss AnomalyDetection::forward_backward(const StepBatches& batches) {
  const ModeScope mode;
  failure().take();
  try {
    return inner().forward_backward(batches);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const std::string where = failure().take();
    Error shown(is_of_a_gradient(message) ? ErrorKind::data : ErrorKind::internal, message);
    if (!where.empty()) shown.with_context(where);
    throw shown;
  } catch (Error& error) {
    const std::string where = failure().take();
    if (where.empty()) throw;
    // the executor of a pipeline has converted LibTorch's error to an internal Error
    Error shown(is_of_a_gradient(error.message()) ? ErrorKind::data : error.kind(), error.what());
    throw shown.with_context(where);
  }
}

}  // namespace titan::debugging
