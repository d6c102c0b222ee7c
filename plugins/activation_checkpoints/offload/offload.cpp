#include "offload.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/log.h>

namespace titan::offload {
namespace {

/// A saved tensor whose memory is in a HostCopy until autograd unpacks it.
class MovedTensor final : public nn::SavedTensor {
 public:
  MovedTensor(std::shared_ptr<HostCopy> copy, std::weak_ptr<BlockMemory> block,
              const at::Tensor& tensor)
      : copy_(std::move(copy)),
        block_(std::move(block)),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        offset_(tensor.storage_offset()) {}
  at::Tensor unpack() override {
    at::Tensor tensor = copy_->take().as_strided(sizes_, strides_, offset_);
    if (!tensor.is_cpu())  // on a CPU another thread than the device's may call
      if (const auto block = block_.lock()) block->fetch_ahead();
    return tensor;
  }

 private:
  std::shared_ptr<HostCopy> copy_;
  std::weak_ptr<BlockMemory> block_;  // expired if nothing is fetched ahead
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_;
};

/// The last block that ran, to which the next one of the same forward is linked.
struct Chain {
  size_t place = 0;
  std::weak_ptr<BlockMemory> memory;
};

}  // namespace

BlockMemory::BlockMemory(const OffloadOptions& options, std::shared_ptr<Transfers> transfers,
                         const std::vector<nn::Parameter*>& parameters,
                         std::weak_ptr<BlockMemory> before)
    : options_(options), transfers_(std::move(transfers)), before_(std::move(before)) {
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
      return std::make_unique<MovedTensor>(std::move(copy), weak_from_this(), tensor);
  const at::Tensor flat =
      tensor.as_strided({bytes / static_cast<int64_t>(tensor.element_size())}, {1}, 0);
  auto copy = std::make_shared<HostCopy>(flat, transfers_);
  moved_.insert_or_assign(address, Entry{storage.getWeakStorageImpl(), copy});
  copies_.push_back(copy);
  num_to_fetch_ = copies_.size();
  kept_bytes_ += copy->bytes();
  transfers_->start(copy, this);
  return std::make_unique<MovedTensor>(std::move(copy), weak_from_this(), tensor);
}

void BlockMemory::start_backward() {
  transfers_->finish_others(this);
  fetch_ahead();
}

void BlockMemory::fetch_ahead() {
  for (; num_to_fetch_ > 0; --num_to_fetch_) {
    const auto copy = copies_[num_to_fetch_ - 1].lock();
    if (!copy || !copy->can_return_early()) continue;
    if (!transfers_->has_room(copy->bytes())) return;
    copy->start_return();
  }
  if (const auto before = before_.lock()) before->fetch_ahead();
}

void Offload::apply(ModelPart& part, const TransformContext& context) {
  if (context.device.device().is_cpu())
    log::warn(
        "activation_checkpoint.mode = \"offload\" on a CPU: the activations are copied from "
        "host memory to host memory, which saves nothing");
  const auto last = std::make_shared<Chain>();
  const auto transfers = std::make_shared<Transfers>(options_.pin_memory);
  size_t place = 0;
  for (Layer& layer : part.layers()) {
    if (!layer.is_block) continue;
    std::vector<nn::Parameter*> parameters;
    layer.module->visit_parameters([&](nn::Parameter& p) { parameters.push_back(&p); });
    layer.module->wrap([last, transfers, place = ++place, parameters, options = options_](
                           const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      if (!at::GradMode::is_enabled()) return next(x, batch);
      const auto memory = std::make_shared<BlockMemory>(
          options, transfers, parameters,
          last->place + 1 == place ? last->memory : std::weak_ptr<BlockMemory>());
      *last = {place, memory};
      at::Tensor y;
      {
        const nn::SavedTensorScope saved(memory.get());
        y = next(x, batch);
      }
      memory->end_forward();
      if (options.prefetch && y.requires_grad())
        y.register_hook([memory](const at::Tensor&) { memory->start_backward(); });
      return y;
    });
  }
  // one rank of a pipeline may hold no block
  TITAN_CHECK(place > 0 || context.pipeline, config,
              "activation offload works on the blocks of a model, and this model has none "
              "(Layer::is_block); set activation_checkpoint.mode = \"none\"");
}

}  // namespace titan::offload
