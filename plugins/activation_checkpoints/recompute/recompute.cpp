#include "recompute.h"

#include <algorithm>
#include <charconv>

#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/nn/linear.h>

namespace titan::recompute {
namespace {

/// Shapes (in, out), as this rank computes them, of the linear layers whose path holds one of
/// `names`.
std::set<std::array<int64_t, 2>> shapes_of(ModelPart& part, const std::vector<std::string>& names) {
  std::set<std::array<int64_t, 2>> shapes;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* linear = dynamic_cast<nn::Linear*>(&module);
    const auto is_named = [&](const std::string& name) {
      return path.find(name) != std::string::npos;
    };
    if (!linear || std::none_of(names.begin(), names.end(), is_named)) return;
    const auto sizes = linear->weight().value().sizes();
    shapes.insert({sizes[1], sizes[0]});
  });
  return shapes;
}

}  // namespace

std::vector<Layer*> blocks_of(ModelPart& part, const TransformContext& context) {
  std::vector<Layer*> blocks;
  for (Layer& layer : part.layers())
    if (layer.is_block) blocks.push_back(&layer);
  // one rank of a pipeline may hold none
  TITAN_CHECK(!blocks.empty() || context.pipeline, config,
              "activation checkpointing works on the blocks of a model, and this model has none "
              "(Layer::is_block); set activation_checkpoint.mode = \"none\"");
  return blocks;
}

void checkpoint(Layer& layer, const CommonOptions& options, std::shared_ptr<const Policy> policy,
                c10::Device device) {
  auto block = std::make_shared<Block>(
      Block{.name = layer.name,
            .settings = {.early_stop = options.early_stop,
                         .preserve_rng_state = options.preserve_rng_state,
                         .checks_determinism = options.determinism_check != "none",
                         .debug = options.debug,
                         .device = device},
            .policy = std::move(policy)});
  layer.module->visit_parameters(
      [&](nn::Parameter& parameter) { block->parameters.push_back(&parameter); });
  layer.module->wrap([block](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    if (!at::GradMode::is_enabled()) return next(x, batch);
    return std::make_shared<BlockRun>(block, x, batch, next)->forward(x);
  });
}

void Full::apply(ModelPart& part, const TransformContext& context) {
  const std::shared_ptr<const Policy> policy = keep_nothing();
  for (Layer* layer : blocks_of(part, context))
    checkpoint(*layer, options_, policy, context.device.device());
}

Selective::Selective(const SelectiveOptions& options, TransformContext) : options_(options) {
  const std::string& text = options_.selective_ac_option;
  if (text == "op") return;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, every_);
  TITAN_CHECK(error == std::errc() && parsed == end, config, "selective_ac_option = '", text,
              "' is neither a number of blocks nor 'op'");
  every_ = std::max<size_t>(every_, 1);  // torchtitan's "0" is every block
}

void Selective::apply(ModelPart& part, const TransformContext& context) {
  const std::vector<Layer*> blocks = blocks_of(part, context);
  const c10::Device device = context.device.device();
  if (every_ == 0) {
    const std::shared_ptr<const Policy> policy =
        keep_costly(shapes_of(part, options_.per_op_sac_force_recompute_mm_shapes_by_fqns));
    for (Layer* layer : blocks) checkpoint(*layer, options_, policy, device);
    return;
  }
  const std::shared_ptr<const Policy> policy = keep_nothing();
  for (size_t i = 0; i < blocks.size(); ++i)
    if ((i + 1) % every_ == 0) checkpoint(*blocks[i], options_, policy, device);
}

}  // namespace titan::recompute
