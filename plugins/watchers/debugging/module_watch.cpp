#include "module_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <titan/recompute.h>
#include <torch/csrc/autograd/graph_task.h>

namespace titan::debugging {
namespace {

using Kind = TensorPlace::Kind;

bool is_backward(Kind kind) {
  return kind == Kind::output_gradient || kind == Kind::weight_gradient;
}

}  // namespace

TensorWatcher::~TensorWatcher() = default;

TensorPlace::Key TensorPlace::key() const {
  switch (kind) {
    case Kind::parameter:
      return {0, 0, 0, sequence};
    case Kind::input:
    case Kind::output:
      return {1, microbatch, layer, sequence};
    case Kind::output_gradient:
    case Kind::weight_gradient:
      return {2, microbatch, -layer, sequence};
    case Kind::gradient:
      return {3, 0, 0, sequence};
  }
  return {};
}

std::string_view word_of(Kind kind) {
  switch (kind) {
    case Kind::parameter:
      return "parameter";
    case Kind::input:
      return "input";
    case Kind::output:
      return "output";
    case Kind::output_gradient:
      return "gradient of output";
    case Kind::weight_gradient:
      return "gradient of one microbatch";
    case Kind::gradient:
      return "gradient";
  }
  return "";
}

std::string words_of(const TensorPlace& place) {
  switch (place.kind) {
    case Kind::parameter:
      return "the weight " + place.name;
    case Kind::input:
      return "the input of " + place.name;
    case Kind::output:
      return "the output of " + place.name;
    case Kind::output_gradient:
      return "the gradient of the output of " + place.name +
             ", which the backward of its consumer computes,";
    case Kind::weight_gradient:
      return "the gradient of the weight " + place.name;
    case Kind::gradient:
      return "the gradient of the weight " + place.name + ", summed over microbatches and ranks,";
  }
  return "";
}

void ModuleWatch::match(ModelPart& whole) {
  for (const Layer& layer : whole.layers()) layers_.emplace(layer.name, layers_.size());
  whole.visit_modules([&](const std::string& path, nn::Module&) { names_.push_back(path); });
  for (const ParameterInfo& parameter : whole.all_parameters()) names_.push_back(parameter.name);
}

bool ModuleWatch::is_wanted(std::string_view name) const {
  return std::any_of(watchers_.begin(), watchers_.end(),
                     [&](const Watching& each) { return each.watcher->wants(name); });
}

void ModuleWatch::attach(ModelPart& part) {
  part_ = &part;
  for (Layer& layer : part.layers()) {
    const size_t place = layers_.at(layer.name);
    layer.module->visit_parameters(
        [&](nn::Parameter& parameter) { layer_of_.emplace(&parameter, place); });
    layer.module->visit_modules(
        [&](const std::string& path, nn::Module& module) {
          if (is_wanted(path)) go_around(path, module, place);
        },
        layer.name);
    go_around_layer(*layer.module, place);  // outermost: it sets running_ for the others
  }
}

void ModuleWatch::go_around_layer(nn::Module& module, size_t layer) {
  module.wrap([this, layer](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    if (!is_open_ || !is_first_run()) return next(x, batch);
    const int64_t rows = batch.tokens.defined() ? batch.tokens.size(0) : 0;
    running_ = {.layer = layer,
                .microbatch = num_microbatches_[layer]++,
                .first_row = std::exchange(num_rows_[layer], num_rows_[layer] + rows),
                .num_rows = rows};
    const at::Tensor y = next(x, batch);
    if (y.requires_grad())
      y.register_hook([this, place = running_](const at::Tensor&) {
        backward_[place.layer] = place.microbatch;
      });
    return y;
  });
}

void ModuleWatch::go_around(const std::string& path, nn::Module& module, size_t layer) {
  module.wrap([this, path, layer](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    if (!is_open_ || !is_first_run()) return next(x, batch);
    const Running here = running_;
    const auto place = [&](Kind kind) {
      return TensorPlace{.kind = kind,
                         .name = path,
                         .microbatch = here.microbatch,
                         .layer = static_cast<int64_t>(layer),
                         .first_row = here.first_row,
                         .num_rows = here.num_rows};
    };
    if (x.defined()) show(place(Kind::input), x);
    const at::Tensor y = next(x, batch);
    show(place(Kind::output), y);
    watch_gradient(y, path, here);
    return y;
  });
}

void ModuleWatch::watch_gradient(const at::Tensor& output, const std::string& path,
                                 const Running& here) {
  if (!output.requires_grad()) return;
  output.register_hook([this, path, here](const at::Tensor& gradient) {
    if (!is_open_ || !gradient.defined()) return;
    show({.kind = Kind::output_gradient,
          .name = path,
          .microbatch = here.microbatch,
          .layer = static_cast<int64_t>(here.layer),
          .first_row = here.first_row,
          .num_rows = here.num_rows},
         gradient);
  });
}

/// Leaf tensors do not change after the first step.
void ModuleWatch::watch_weight_gradients() {
  if (std::exchange(hooks_are_there_, true)) return;
  for (nn::Parameter* parameter : part_->parameters()) {
    if (!parameter->value().requires_grad() || !is_wanted(parameter->name())) continue;
    parameter->value().register_hook([this, parameter](const at::Tensor& gradient) {
      if (!is_open_ || !gradient.defined()) return;  // deferred by a pipeline
      const size_t layer = layer_of_.at(parameter);
      const int64_t number = num_gradients_[parameter]++;
      const bool is_in_backward = torch::autograd::get_current_graph_task_id() != -1;
      show({.kind = Kind::weight_gradient,
            .name = parameter->name(),
            .microbatch = is_in_backward ? backward_[layer] : number,
            .layer = static_cast<int64_t>(layer),
            .parameter = parameter},
           gradient);
    });
  }
}

void ModuleWatch::begin(Step& step) {
  is_due_ = false;
  for (Watching& each : watchers_) {
    each.is_due = each.watcher->watches(step);
    is_due_ = is_due_ || each.is_due;
  }
  if (!is_due_) return;
  watch_weight_gradients();
  int64_t sequence = 0;
  for (const nn::Parameter* parameter : part_->parameters())
    show({.kind = Kind::parameter,
          .name = parameter->name(),
          .layer = static_cast<int64_t>(layer_of_.at(parameter)),
          .sequence = sequence++,
          .parameter = parameter},
         parameter->shard());
}

void ModuleWatch::reduced(Step&) {
  if (!is_due_) return;
  int64_t sequence = 0;
  for (const nn::Parameter* parameter : part_->parameters()) {
    const TensorPlace place = {.kind = Kind::gradient,
                               .name = parameter->name(),
                               .layer = static_cast<int64_t>(layer_of_.at(parameter)),
                               .sequence = sequence++,
                               .parameter = parameter};
    if (const at::Tensor gradient = parameter->grad(); gradient.defined()) show(place, gradient);
  }
}

void ModuleWatch::begin_step() {
  num_microbatches_.clear();
  num_rows_.clear();
  backward_.clear();
  num_gradients_.clear();
  num_shown_.clear();
  is_open_ = is_due_;
}

void ModuleWatch::show(TensorPlace place, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor plain = tensor.detach();
  if (place.microbatch >= 0)
    place.sequence =
        num_shown_[{is_backward(place.kind), static_cast<size_t>(place.layer), place.microbatch}]++;
  for (const Watching& each : watchers_)
    if (each.is_due && each.watcher->wants(place.name)) each.watcher->see(place, plain);
}

}  // namespace titan::debugging
