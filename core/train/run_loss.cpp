#include "core/train/run_loss.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/loss.h>
#include <titan/nn/head.h>

#include "core/config/make_selected.h"
#include "core/train/placed_modules.h"

namespace titan::core {
namespace {

/// Names of losses' parts become parts of tags.
void check_part_names(std::vector<std::string> names) {
  for (const std::string& name : names)
    TITAN_CHECK(!name.empty(), plugin, "a part of the loss has no name");
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TITAN_CHECK(twice == names.end(), plugin, "two parts of the loss are named '", *twice, "'");
}

}  // namespace

void set_loss(Run& run, const JobConfig& config, Registry& registry) {
  if (config.loss.name.empty()) return;
  const LossContext context = {.vocab_size = run.model->vocab_size()};
  const std::shared_ptr<Loss> loss = make_selected<Loss>(registry, config.loss, context);
  const std::vector<std::string> names = loss->part_names();
  check_part_names(names);
  run.loss_parts = std::make_unique<LossParts>(names);
  const nn::HeadLoss of_heads = {
      loss, [&parts = *run.loss_parts](const std::vector<at::Tensor>& sums) { parts.take(sums); }};
  run.part->visit_modules([&](const std::string& path, nn::Module& module) {
    auto* head = dynamic_cast<nn::OutputHead*>(&module);
    if (!head) return;
    head->set_loss(of_heads);
    run.heads_with_loss.push_back(path);
  });
  on_behalf_of(config.loss, [&] {
    TITAN_CHECK(!run.heads_with_loss.empty(), config, "loss '", config.loss.name,
                "' has no place: model '", config.model_plugin.name,
                "' has no nn::OutputHead; leave out loss.name");
  });
}

void check_loss(Run& run, const JobConfig& config) {
  std::vector<std::string> left = run.heads_with_loss;
  std::erase_if(left, [&](const std::string& path) { return !has_layer_of(*run.part, path); });
  run.part->visit_modules([&](const std::string& path, nn::Module& module) {
    const auto* head = dynamic_cast<nn::OutputHead*>(&module);
    if (head && head->loss()) std::erase(left, path);
  });
  on_behalf_of(config.loss, [&] {
    TITAN_CHECK(left.empty(), config, "loss '", config.loss.name, "' cannot be computed by '",
                left.front(), "', which a converter or a pass has replaced; leave out one of them");
  });
}

}  // namespace titan::core
