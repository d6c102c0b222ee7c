#include "offload.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/log.h>

namespace titan::offload {
namespace {

/// A view of memory that is elsewhere until it is asked for.
class MovedTensor final : public nn::SavedTensor {
 public:
  MovedTensor(std::shared_ptr<HostCopy> copy, const at::Tensor& tensor)
      : copy_(std::move(copy)),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        offset_(tensor.storage_offset()) {}
  at::Tensor unpack() override { return copy_->take().as_strided(sizes_, strides_, offset_); }

 private:
  std::shared_ptr<HostCopy> copy_;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_;
};

/// The blocks of one forward, each knowing the one before it.
struct Chain {
  size_t place = 0;
  std::weak_ptr<BlockMemory> memory;
};

}  // namespace

BlockMemory::BlockMemory(const OffloadOptions& options,
                         const std::vector<nn::Parameter*>& parameters)
    : options_(options) {
  for (nn::Parameter* parameter : parameters)
    stays_.insert(parameter->value().storage().unsafeGetStorageImpl());
}

std::unique_ptr<nn::SavedTensor> BlockMemory::pack(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  c10::StorageImpl* const address = storage.unsafeGetStorageImpl();
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  if (stays_.contains(address) || bytes < options_.min_bytes.count)
    return std::make_unique<nn::HeldTensor>(tensor);
  const auto found = moved_.find(address);
  if (found != moved_.end() && !found->second.storage.expired())
    if (std::shared_ptr<HostCopy> copy = found->second.copy.lock())
      return std::make_unique<MovedTensor>(std::move(copy), tensor);
  const at::Tensor flat =
      tensor.as_strided({bytes / static_cast<int64_t>(tensor.element_size())}, {1}, 0);
  auto copy = std::make_shared<HostCopy>(flat, options_.pin_memory);
  moved_.insert_or_assign(address, Entry{storage.getWeakStorageImpl(), copy});
  copies_.push_back(copy);
  return std::make_unique<MovedTensor>(std::move(copy), tensor);
}

void BlockMemory::start_return() {
  for (auto copy = copies_.rbegin(); copy != copies_.rend(); ++copy)
    if (const auto alive = copy->lock()) alive->start_return();
}

void Offload::apply(ModelPart& part, const TransformContext& context) {
  if (context.device.device().is_cpu())
    log::warn(
        "activation_checkpoint.mode = \"offload\" on a CPU: the activations are copied from "
        "host memory to host memory, which saves nothing");
  const auto last = std::make_shared<Chain>();
  size_t place = 0;
  for (Layer& layer : part.layers()) {
    if (!layer.is_block) continue;
    std::vector<nn::Parameter*> parameters;
    layer.module->visit_parameters([&](nn::Parameter& p) { parameters.push_back(&p); });
    layer.module->wrap([last, place = ++place, parameters, options = options_](
                           const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      if (!at::GradMode::is_enabled()) return next(x, batch);
      const auto memory = std::make_shared<BlockMemory>(options, parameters);
      const std::weak_ptr<BlockMemory> before =
          last->place + 1 == place ? last->memory : std::weak_ptr<BlockMemory>();
      *last = {place, memory};
      const nn::SavedTensorScope saved(memory.get());
      at::Tensor y = next(x, batch);
      if (options.prefetch && y.requires_grad())
        y.register_hook([memory, before](const at::Tensor&) {
          memory->start_return();
          if (const auto alive = before.lock()) alive->start_return();
        });
      return y;
    });
  }
  // one rank of a pipeline may hold no block
  TITAN_CHECK(place > 0 || context.pipeline, config,
              "activation offload works on the blocks of a model, and this model has none "
              "(Layer::is_block); set activation_checkpoint.mode = \"none\"");
}

}  // namespace titan::offload
