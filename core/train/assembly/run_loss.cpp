#include "core/train/assembly/run_loss.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/loss.h>
#include <titan/nn/head.h>

#include "core/checkpoint/start_point.h"
#include "core/config/selection/make_selected.h"
#include "core/train/step/layer_ownership.h"

namespace titan::core {
namespace {

/// The names of a loss's parts become parts of metric tags.
void check_part_names(std::vector<std::string> names) {
  for (const std::string& name : names)
    TITAN_CHECK(!name.empty(), plugin, "a part of the loss has no name");
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TITAN_CHECK(twice == names.end(), plugin, "two parts of the loss are named '", *twice, "'");
}

void check_sequences(const Run& run, const JobConfig& config) {
  const bool are_cut = std::any_of(
      run.transforms.begin(), run.transforms.end(),
      [](const auto& transform) { return dynamic_cast<BatchSplitter*>(transform.get()); });
  TITAN_CHECK(!are_cut, config, "parallelism.context_parallel_degree = ", config.layout.context,
              " cuts sequences, which loss.name = '", config.loss.name,
              "' needs whole; set it to 1, and let tensor parallelism share long sequences");
  TITAN_CHECK(!run.term_counter || config.data.isolate_documents || run.model->isolates_documents(),
              config, "data.isolate_documents = false, but loss.name = '", config.loss.name,
              "' compares documents of a row, which must not see each other; set it to true");
}

}  // namespace

void set_loss(Run& run, const JobConfig& config, Registry& registry) {
  if (config.loss.name.empty()) return;
  const LossContext context = {.vocab_size = run.model->vocab_size()};
  run.loss = make_selected<Loss>(registry, config.loss, context);
  std::shared_ptr<Loss> loss = run.loss;
  const std::vector<std::string> names = loss->part_names();
  check_part_names(names);
  LossTerms terms;
  if (const auto sequences = std::dynamic_pointer_cast<SequenceLoss>(run.loss)) {
    terms = LossTerms(sequences);
    const auto per_term = std::make_shared<LossPerTerm>(sequences);
    run.term_counter =
        std::make_unique<TermCounter>(terms, per_term, run.mesh, run.device->device());
    loss = per_term;
  }
  run.loss_parts = std::make_unique<LossParts>(names, terms);
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
                "' cannot be used: model '", config.model_plugin.name,
                "' has no nn::OutputHead; leave out loss.name");
  });
}

void count_terms(Run& run) {
  if (!run.term_counter) return;
  run.term_counter->wrap(*run.executor);
  run.executor = run.term_counter.get();
}

bool compares_answers(const Run& run) {
  const auto* sequences = dynamic_cast<const SequenceLoss*>(run.loss.get());
  return sequences && sequences->compares_answers();
}

ReferenceOutput reference_output(const Run& run) {
  const auto* compares = dynamic_cast<const ComparesWithReference*>(run.loss.get());
  return compares ? compares->reference_output() : ReferenceOutput::none;
}

void check_reference(const Run& run, const JobConfig& config) {
  if (config.loss.name.empty()) return;
  const bool is_asked_for = reference_output(run) != ReferenceOutput::none;
  const std::optional<std::string>& folder = config.reference.checkpoint;
  on_behalf_of(config.loss, [&] {
    TITAN_CHECK(
        !is_asked_for || names_reference(config), config, "loss '", config.loss.name,
        "' (loss.name) compares the model with a reference model, but no key names it: "
        "set reference.checkpoint, or checkpoint.enable and checkpoint.initial_load_path to "
        "compare with the weights that the run starts from");
    TITAN_CHECK(is_asked_for || !folder, config, "reference.checkpoint = '", folder.value_or(""),
                "' is unused: loss '", config.loss.name,
                "' compares with no other model in this configuration; leave it out");
  });
}

void check_loss(Run& run, const JobConfig& config) {
  if (run.term_counter || reference_output(run) != ReferenceOutput::none)
    on_behalf_of(config.loss, [&] { check_sequences(run, config); });
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
