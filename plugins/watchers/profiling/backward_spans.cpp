#include "backward_spans.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include <torch/csrc/autograd/engine.h>

#include "module_scopes.h"

namespace titan::profiling {
namespace {

constexpr const char* kTrack = "1000000001";  // thread id of the track; real thread ids are smaller

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string microseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return text;
}

}  // namespace

void BackwardSpans::attach(ModelPart& part) {
  for (size_t i = 0; i < part.layers().size(); ++i) {
    Layer& layer = part.layers()[i];
    layers_.push_back(name_in_trace(layer.name));
    layer.module->wrap([this, i](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      at::Tensor y = next(x, batch);
      if (y.requires_grad() && !y.is_leaf())
        y.register_hook([this, i](const at::Tensor&) { enter(i); });
      return y;
    });
  }
}

void BackwardSpans::keep(bool keeps) {
  const std::lock_guard lock(mutex_);
  if (keeps) spans_.clear();
  keeps_ = keeps;
}

void BackwardSpans::enter(size_t layer) {
  const std::lock_guard lock(mutex_);
  if (!keeps_) return;
  const int64_t now = unix_ns();
  if (is_open_)
    close(now);
  else
    torch::autograd::Engine::get_default_engine().queue_callback([this] { end_pass(); });
  open_ = {.layer = layer, .begin = now};
  is_open_ = true;
}

void BackwardSpans::end_pass() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_open_, false)) close(unix_ns());
}

void BackwardSpans::close(int64_t now) {
  open_.end = now;
  spans_.push_back(open_);
}

std::vector<std::string> BackwardSpans::take_events(int64_t base_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> events;
  const std::string place =
      "\"pid\": " + std::to_string(::getpid()) + ", \"tid\": " + kTrack + ", \"ts\": ";
  const auto metadata = [&](const char* what, const std::string& argument) {
    events.push_back("{\"name\": \"" + std::string(what) + "\", \"ph\": \"M\", " + place +
                     microseconds(0) + ", \"args\": {" + argument + "}}");
  };
  metadata("thread_name", "\"name\": \"layers, backward\"");
  metadata("thread_sort_index", std::string("\"sort_index\": ") + kTrack);
  for (const Span& span : std::exchange(spans_, {}))
    events.push_back(R"({"ph": "X", "cat": "user_annotation", "name": "backward of )" +
                     layers_[span.layer] + "\", " + place + microseconds(span.begin - base_ns) +
                     ", \"dur\": " + microseconds(span.end - span.begin) + "}");
  return events;
}

}  // namespace titan::profiling
