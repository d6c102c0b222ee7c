#include "budget.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <titan/log.h>

#include "kept_results.h"
#include "pareto.h"
#include "random_state.h"

namespace titan::recompute {
namespace {

/// Lists the operations of a block and the sizes of their results; keeps nothing.
class Measurement final : public RecomputeScope {
 public:
  std::vector<at::Tensor> run(const Operation& operation, const Compute& compute) override {
    std::vector<at::Tensor> results = compute();
    Candidate candidate{.operation = operation};
    for (const at::Tensor& result : results)
      candidate.bytes += static_cast<int64_t>(result.nbytes());
    candidates.push_back(candidate);
    return results;
  }
  bool runs_again() const override { return true; }

  std::vector<Candidate> candidates;
};

std::string in_words(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::matmul:
      return "matmul " + std::to_string(operation.shape[0]) + "x" +
             std::to_string(operation.shape[1]);
    case Operation::Kind::attention:
      return "attention";
    case Operation::Kind::reduce_scatter:
      return "reduce_scatter";
    case Operation::Kind::all_to_all:
      return "all_to_all";
    case Operation::Kind::maximum:
      return "maximum";
    case Operation::Kind::routing:
      return "routing";
  }
  return "";
}

/// The choice for all blocks of a part, made at the first forward.
class Choice {
 public:
  /// `folder`: for plots; empty: none are written.
  Choice(const BudgetOptions& options, std::vector<std::string> names, std::string folder, int rank)
      : options_(options),
        names_(std::move(names)),
        places_(names_.size()),
        folder_(std::move(folder)),
        rank_(rank) {}

  bool is_made() const { return is_made_; }
  const std::set<size_t>& places(size_t block) const { return places_[block]; }

  void make(const std::vector<Candidate>& candidates) {
    is_made_ = true;
    const int64_t of_block = std::accumulate(
        candidates.begin(), candidates.end(), int64_t{0},
        [](int64_t sum, const Candidate& candidate) { return sum + candidate.bytes; });
    const int64_t all = of_block * static_cast<int64_t>(names_.size());
    const int64_t budget =
        options_.kept_bytes >= 0
            ? options_.kept_bytes
            : static_cast<int64_t>(options_.memory_budget * static_cast<double>(all));
    places_ = choose_within(budget, candidates, names_.size());
    print(candidates, budget, all);
    if (options_.visualize_memory_budget_pareto && !folder_.empty()) draw(candidates, budget, all);
  }

 private:
  void draw(const std::vector<Candidate>& candidates, int64_t budget, int64_t all) const {
    const double share = all > 0 ? static_cast<double>(budget) / static_cast<double>(all) : 0;
    const double chosen = options_.kept_bytes >= 0 ? std::min(1.0, share) : options_.memory_budget;
    write_pareto(pareto_points(candidates, names_.size(), chosen), chosen, folder_, rank_);
  }

  /// One line for neighbouring blocks that keep the same results.
  void print(const std::vector<Candidate>& candidates, int64_t budget, int64_t all) const {
    char text[160];
    std::snprintf(text, sizeof text,
                  "activation checkpointing keeps results up to %.3f of %.3f MiB per microbatch",
                  static_cast<double>(budget) / (1 << 20), static_cast<double>(all) / (1 << 20));
    std::string message = text;
    for (size_t first = 0, last = 0; first < names_.size(); first = last) {
      while (last < names_.size() && places_[last] == places_[first]) ++last;
      message += "\n  " + names_[first] + (last - first > 1 ? " to " + names_[last - 1] : "") + ":";
      if (places_[first].empty()) message += " nothing but the input";
      for (const size_t place : places_[first])
        message +=
            (place == *places_[first].begin() ? " " : ", ") + in_words(candidates[place].operation);
    }
    log::info(message);
  }

  BudgetOptions options_;
  std::vector<std::string> names_;
  std::vector<std::set<size_t>> places_;
  std::string folder_;
  int rank_;
  bool is_made_ = false;
};

class ChosenPolicy final : public Policy {
 public:
  ChosenPolicy(std::shared_ptr<const Choice> choice, size_t block)
      : choice_(std::move(choice)), block_(block) {}
  bool keeps(const std::vector<Operation>& operations) const override {
    return choice_->places(block_).contains(operations.size() - 1);
  }

 private:
  std::shared_ptr<const Choice> choice_;
  size_t block_;
};

std::vector<Candidate> measure(const at::Tensor& x, const Batch& batch, const nn::Next& next,
                               const BudgetOptions& options, c10::Device device) {
  const SameRandomNumbers random(
      device, options.preserve_rng_state ? random_states(device) : std::vector<at::Tensor>());
  Measurement measurement;
  const nn::SavedTensorScope plain(nullptr);
  const RecomputeScope::Entry entry(&measurement);
  next(x.detach().set_requires_grad(x.requires_grad()), batch);
  return std::move(measurement.candidates);
}

}  // namespace

void MemoryBudget::apply(ModelPart& part, const TransformContext& context) {
  const std::vector<Layer*> blocks = blocks_of(part, context);
  std::vector<std::string> names;
  for (const Layer* layer : blocks) names.push_back(layer->name);
  const auto choice = std::make_shared<Choice>(options_, std::move(names), context.dump_folder,
                                               context.mesh.rank());
  const c10::Device device = context.device.device();
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i]->module->wrap([choice, options = options_, device](
                                const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      if (at::GradMode::is_enabled() && !choice->is_made())
        choice->make(measure(x, batch, next, options, device));
      return next(x, batch);
    });
    checkpoint(*blocks[i], options_, std::make_shared<ChosenPolicy>(choice, i), device);
  }
}

}  // namespace titan::recompute
