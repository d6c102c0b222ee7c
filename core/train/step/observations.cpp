#include "core/train/step/observations.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <titan/name_pattern.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/head.h>
#include <titan/recompute.h>

#include "core/config/selection/component_error.h"
#include "core/train/step/layer_ownership.h"

namespace titan::core {
namespace {

bool has_what_is_asked(nn::Module& module, Observed what) {
  switch (what) {
    case Observed::attention:
      return dynamic_cast<nn::AttentionLayer*>(&module) != nullptr;
    case Observed::logits:
      return dynamic_cast<nn::OutputHead*>(&module) != nullptr;
    case Observed::input:
    case Observed::output:
      return true;
  }
  return false;
}

const char* words_of(Observed what) {
  switch (what) {
    case Observed::attention:
      return "layer that attends";
    case Observed::logits:
      return "output head";
    case Observed::input:
    case Observed::output:
      return "module";
  }
  return "";
}

}  // namespace

/// Observes queries and keys before they reach the layer's attention kernel.
class Observations::Attention final : public nn::AttentionKernel {
 public:
  Attention(Observations& all, Probe& probe, std::string module,
            std::shared_ptr<const nn::AttentionRule> rule,
            std::unique_ptr<nn::AttentionKernel> inner)
      : all_(all),
        probe_(probe),
        module_(std::move(module)),
        rule_(std::move(rule)),
        inner_(std::move(inner)) {}

  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) override {
    if (all_.is_looking(probe_))
      all_.look(probe_, module_,
                {.batch = batch, .queries = q.detach(), .keys = k.detach(), .rule = rule_.get()});
    return inner_->attend(q, k, v, batch);
  }

 private:
  Observations& all_;
  Probe& probe_;
  std::string module_;
  std::shared_ptr<const nn::AttentionRule> rule_;  // shared with the layer
  std::unique_ptr<nn::AttentionKernel> inner_;
};

/// Observes the head's input, and projects its first rows again for the observer.
class Observations::Head final : public nn::HeadKernel {
 public:
  Head(Observations& all, Probe& probe, std::string module, std::unique_ptr<nn::HeadKernel> inner)
      : all_(all), probe_(probe), module_(std::move(module)), inner_(std::move(inner)) {}

  at::Tensor logits(const at::Tensor& x, nn::Parameter& weight) override {
    return inner_->logits(x, weight);
  }
  at::Tensor loss_sum(const at::Tensor& x, nn::Parameter& weight,
                      const at::Tensor& labels) override {
    look(x, weight, labels);
    return inner_->loss_sum(x, weight, labels);
  }
  at::Tensor loss_sum_by(const ops::ChunkLoss& loss, const at::Tensor& x, nn::Parameter& weight,
                         const at::Tensor& labels) override {
    look(x, weight, labels);
    return inner_->loss_sum_by(loss, x, weight, labels);
  }

 private:
  void look(const at::Tensor& x, nn::Parameter& weight, const at::Tensor& labels) {
    if (!all_.is_looking(probe_)) return;
    const at::NoGradGuard no_grad;
    const int64_t rows = std::min(probe_.asked.rows, x.size(0));
    const at::Tensor logits = inner_->logits(x.detach().narrow(0, 0, rows), weight);
    const Batch batch = {.labels = labels.narrow(0, 0, rows)};
    all_.look(probe_, module_,
              {.batch = batch,
               .tensor = x.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat)});
  }

  Observations& all_;
  Probe& probe_;
  std::string module_;
  std::unique_ptr<nn::HeadKernel> inner_;
};

bool observes_tensors(Registry& registry, const Selection& logger) {
  const auto& abilities = registry.component(logger.kind, logger.name).abilities;
  return std::find(abilities.begin(), abilities.end(), "TensorObserver") != abilities.end();
}

void Observations::add(const Selection& chosen, std::shared_ptr<Logger> logger) {
  auto* observer = dynamic_cast<TensorObserver*>(logger.get());
  if (!observer) return;
  size_t index = 0;
  for (Observation& asked : observer->observations())
    probes_.push_back(std::make_unique<Probe>(
        Probe{chosen, logger, observer, index++, std::move(asked), {}, false, {}}));
}

void Observations::match(ModelPart& whole, const dist::Mesh& mesh) {
  for (const auto& probe : probes_)
    on_behalf_of(probe->chosen, [&] { match(*probe, whole, mesh); });
}

void Observations::match(Probe& probe, ModelPart& whole, const dist::Mesh& mesh) {
  const Observation& asked = probe.asked;
  const std::string who = "logger '" + probe.chosen.name + "'";
  TITAN_CHECK(asked.every > 0, config, who, " looks at '", asked.modules, "' every ", asked.every,
              " steps; it must be 1 or more");
  TITAN_CHECK(asked.what != Observed::logits || asked.rows > 0, config, who, " asks for ",
              asked.rows, " rows of the logits of '", asked.modules, "'; it must be 1 or more");
  TITAN_CHECK(asked.what != Observed::attention || mesh.group("cp").size() == 1, config, who,
              " asks for queries and keys of '", asked.modules,
              "', but with parallelism.context_parallel_degree = ", mesh.group("cp").size(),
              " no rank has all keys of a query; leave out one of them");
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> others;
  whole.visit_modules([&](const std::string& path, nn::Module& module) {
    const bool has_it = has_what_is_asked(module, asked.what);
    if (has_it && matches_pattern(path, asked.modules)) probe.modules.push_back(path);
    if (has_it) others.push_back("'" + path + "'");
  });
  std::string examples;
  for (size_t i = 0; i < std::min(others.size(), kMostNamed); ++i)
    examples += (i ? ", " : "; there are ") + others[i];
  if (others.size() > kMostNamed) examples += " and so on";
  TITAN_CHECK(!probe.modules.empty(), config, who, " looks at '", asked.modules,
              "', which fits no ", words_of(asked.what), " of the model", examples);
  TITAN_CHECK(asked.what != Observed::input || probe.modules.front() != whole.layers().front().name,
              config, who, " asks for the input of '", probe.modules.front(),
              "', the model's first layer, which has none but the tokens");
}

void Observations::attach(ModelPart& part) {
  for (const auto& probe : probes_)
    on_behalf_of(probe->chosen, [&] {
      std::vector<std::string> left;
      for (const std::string& path : probe->modules)  // others are on another rank of a pipeline
        if (has_layer_of(part, path)) left.push_back(path);
      part.visit_modules([&](const std::string& path, nn::Module& module) {
        if (!has_what_is_asked(module, probe->asked.what) || std::erase(left, path) == 0) return;
        probe->num_seen[path] = 0;
        attach(*probe, path, module);
      });
      TITAN_CHECK(left.empty(), config, "logger '", probe->chosen.name, "' looks at '",
                  left.front(), "', which a converter or a pass has replaced by something else");
    });
}

void Observations::attach(Probe& probe, const std::string& path, nn::Module& module) {
  const std::string who = "logger '" + probe.chosen.name + "'";
  switch (probe.asked.what) {
    case Observed::attention: {
      nn::AttentionCore& core = dynamic_cast<nn::AttentionLayer&>(module).core();
      core.wrap_kernel(
          who,
          [&](std::unique_ptr<nn::AttentionKernel> inner) {
            return std::make_unique<Attention>(*this, probe, path, core.rule(), std::move(inner));
          },
          path);
      return;
    }
    case Observed::logits:
      dynamic_cast<nn::OutputHead&>(module).wrap_kernel(
          who, [&](std::unique_ptr<nn::HeadKernel> inner) {
            return std::make_unique<Head>(*this, probe, path, std::move(inner));
          });
      return;
    case Observed::input:
    case Observed::output:
      module.wrap(
          [this, &probe, path](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
            if (!is_looking(probe)) return next(x, batch);
            const bool is_input = probe.asked.what == Observed::input;
            if (is_input) look(probe, path, {.batch = batch, .tensor = x.detach()});
            const at::Tensor y = next(x, batch);
            if (!is_input) look(probe, path, {.batch = batch, .tensor = y.detach()});
            return y;
          });
      return;
  }
}

void Observations::begin(Step& step) {
  step_ = step.number;
  for (const auto& probe : probes_) probe->is_due = step_ == 1 || step_ % probe->asked.every == 0;
}

void Observations::begin_step() {
  totals_.clear();
  for (const auto& probe : probes_)
    for (auto& [module, num_seen] : probe->num_seen) num_seen = 0;
  is_open_ = true;
}

/// False while a layer is recomputed, in backward or for a measurement.
bool Observations::is_looking(const Probe& probe) const {
  return is_open_ && probe.is_due && is_first_run();
}

void Observations::look(Probe& probe, const std::string& module, ObservedTensors tensors) {
  const at::NoGradGuard no_grad;
  tensors.index = probe.index;
  tensors.module = module;
  tensors.step = step_;
  ++probe.num_seen[module];
  try {
    for (const ObservedNumber& number : probe.observer->observe(tensors)) {
      TITAN_CHECK(!number.tag.empty() && number.tag.find('\0') == std::string::npos, plugin,
                  "a number has no tag");
      totals_[number.tag].add({number.sum, number.weight, number.how});
    }
  } catch (Error& error) {
    error.with_context("in logger '" + probe.chosen.name + "', which looks at '" + module + "'");
    throw;
  }
}

void Observations::log(WatcherLog& loggers, const dist::Group& world, c10::Device device) {
  bool is_any_due = false;
  for (const auto& probe : probes_) {
    if (!probe->is_due) continue;
    is_any_due = true;
    for (const auto& [module, num_seen] : probe->num_seen)
      TITAN_CHECK(num_seen > 0, plugin, "logger '", probe->chosen.name, "' looks at '", module,
                  "', which was not run in step ", step_,
                  ": a module around it computes in its place; observe that module instead");
  }
  if (!is_any_due) return;
  std::vector<Scalar> scalars;
  for (const auto& [tag, total] : over_ranks(totals_, world, device))
    if (total.weight != 0)
      scalars.push_back({tags_.emplace(tag, tag).first->second, total.value()});
  if (!scalars.empty()) loggers.log(step_, scalars);
}

namespace {

class ObservationWatcher final : public Watcher {
 public:
  ObservationWatcher(std::unique_ptr<Observations> observations, const dist::Mesh& mesh,
                     Device& device, WatcherLog& loggers)
      : observations_(std::move(observations)), mesh_(mesh), device_(device), loggers_(loggers) {}

  void match(ModelPart& whole) override { observations_->match(whole, mesh_); }
  void attach(ModelPart& part) override { observations_->attach(part); }
  std::vector<StepMember*> members() override { return {observations_.get()}; }
  GradientReducer* follower() override { return observations_.get(); }
  bool reads_numbers() const override { return false; }
  void report(int64_t) override {
    observations_->log(loggers_, mesh_.group("world"), device_.device());
  }

 private:
  std::unique_ptr<Observations> observations_;
  const dist::Mesh& mesh_;
  Device& device_;
  WatcherLog& loggers_;
};

}  // namespace

std::unique_ptr<Watcher> as_watcher(std::unique_ptr<Observations> observations,
                                    const dist::Mesh& mesh, Device& device, WatcherLog& loggers) {
  return std::make_unique<ObservationWatcher>(std::move(observations), mesh, device, loggers);
}

}  // namespace titan::core
