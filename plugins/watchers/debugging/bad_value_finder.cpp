#include "bad_value_finder.h"

#include <cmath>
#include <limits>
#include <tuple>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <titan/error.h>
#include <titan/program/quantity_text.h>

#include "tensor_statistics.h"

namespace titan::debugging {
namespace {

using Kind = TensorPlace::Kind;

constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostLayers = int64_t{1} << 19;

/// The key as one number for comparing ranks: 2 bits of phase, 16, 20 and 24.
int64_t packed(const TensorPlace::Key& key) {
  const auto [phase, microbatch, layer, sequence] = key;
  const auto at_most = [](int64_t value, int bits) {
    return std::min(value, (int64_t{1} << bits) - 1);
  };
  return phase << 60 | at_most(microbatch, 16) << 44 | at_most(kMostLayers + layer, 20) << 24 |
         at_most(sequence, 24);
}

std::pair<int64_t, int64_t> phase_of(const TensorPlace& place) {
  const TensorPlace::Key key = place.key();
  return {std::get<0>(key), std::get<1>(key)};
}

/// `text` of `root` on every rank.
std::string from_rank(const std::string& text, int root, const dist::Group& world,
                      c10::Device device) {
  const bool is_own = world.rank() == root;
  const auto size = world.all_reduce(is_own ? static_cast<int64_t>(text.size()) : int64_t{0},
                                     dist::Reduce::max, device);
  std::string bytes = is_own ? text : std::string(static_cast<size_t>(size), ' ');
  const at::Tensor shared =
      at::from_blob(bytes.data(), {size}, at::TensorOptions(at::kByte)).to(device).contiguous();
  world.broadcast(shared, root).wait();
  const at::Tensor host = shared.cpu();
  return {reinterpret_cast<const char*>(host.const_data_ptr<uint8_t>()), static_cast<size_t>(size)};
}

std::string advice(Kind kind) {
  switch (kind) {
    case Kind::parameter:
      return "an update or the initial checkpoint caused it: resume from an "
             "earlier checkpoint, lower optimizer.lr or lengthen lr_scheduler.warmup_steps";
    case Kind::input:
    case Kind::output:
      return "lower optimizer.lr, compute in a wider dtype (training.mixed_precision_param) or "
             "look "
             "at the data of this step";
    case Kind::output_gradient:
    case Kind::weight_gradient:
      return "debug.detect_anomaly names the operation; lower optimizer.lr or compute in a wider "
             "type (training.mixed_precision_param)";
    case Kind::gradient:
      return "the sum has overflowed: lower optimizer.lr or reduce in a wider dtype "
             "(training.mixed_precision_reduce)";
  }
  return "";
}

}  // namespace

bool BadValueFinder::watches(const Step& step) {
  first_.reset();
  last_good_.clear();
  return looks_at_ == step.number && step.attempt > 1;
}

void BadValueFinder::see(const TensorPlace& place, const at::Tensor& tensor) {
  if (first_ && first_->place.key() <= place.key()) return;
  if (!has_bad_values(tensor)) {
    last_good_[phase_of(place)] = words_of(place);
    return;
  }
  first_ = {place, describe(place, tensor)};
}

std::string BadValueFinder::describe(const TensorPlace& place, const at::Tensor& tensor) const {
  std::string text =
      words_of(place) + " is bad: " + bad_values_text(statistics_of(tensor), tensor.sizes());
  const std::string activity = mesh_.recorder().activity();
  if (place.kind == Kind::parameter)
    text += ", before the forward";
  else if (!activity.empty())
    text += ", in the " + activity;
  const auto good = last_good_.find(phase_of(place));
  if (good != last_good_.end()) text += "; the last good one before it is " + good->second;
  return text;
}

bool BadValueFinder::is_bad_here(const Step& step) const {
  if (!std::isfinite(step.loss.normalized_sum)) return true;
  const bool may_overflow = smallest_scale_ && step.batches.gradient_scale > *smallest_scale_;
  return step.norm && !std::isfinite(*step.norm) && !may_overflow;
}

Judgement BadValueFinder::judge(const Step& step) {
  const bool is_again = looks_at_ == step.number && step.attempt > 1;
  if (is_again) report(step);
  const int64_t is_bad =
      mesh_.group("world").all_reduce(int64_t{is_bad_here(step)}, dist::Reduce::max, device_);
  if (!is_bad) return {};
  TITAN_CHECK(step.batches.num_valid_tokens > 0, data, "no token of step ", step.number,
              " has a label, on any rank: its loss is 0 / 0; look at the data of this step");
  looks_at_ = step.number;
  before_ = detail::concat("loss ", without_nan_sign(step.loss.normalized_sum));
  if (step.norm) before_ += detail::concat(", gradient norm ", without_nan_sign(*step.norm));
  std::string reason;
  if (mesh_.rank() == 0)
    reason = detail::concat("step ", step.number, " gave ", before_,
                            ": it is run once more to find the cause (debug.find_nan)");
  return {.verdict = Verdict::repeat, .reason = std::move(reason)};
}

void BadValueFinder::report(const Step& step) {
  const dist::Group& world = mesh_.group("world");
  const int64_t own = first_ ? packed(first_->place.key()) : kNothing;
  const int64_t earliest = world.all_reduce(own, dist::Reduce::min, device_);
  TITAN_CHECK(
      earliest != kNothing, data, "step ", step.number, " gave ", before_,
      " on this rank or another, but no layer, weight or gradient holds a bad value when it "
      "is run again, which gave loss ",
      without_nan_sign(step.loss.normalized_sum), " and gradient norm ",
      without_nan_sign(step.norm.value_or(0)),
      step.norm && !std::isfinite(*step.norm) && std::isfinite(step.loss.normalized_sum)
          ? ": the squares of finite gradients overflow; lower optimizer.lr"
          : ": the step is not reproducible; set debug.deterministic = true, and suspect "
            "the machine if that does not help");
  const int64_t first_rank = world.all_reduce(own == earliest ? int64_t{world.rank()} : kNothing,
                                              dist::Reduce::min, device_);
  std::string text;
  if (first_) {
    const Kind kind = first_->place.kind;
    text = detail::concat(first_->text, " (rank ", world.rank(), ", step ", step.number, "); ",
                          kind == Kind::parameter ? "" : "this step has not changed the weights; ",
                          advice(kind));
  }
  fail(ErrorKind::data, from_rank(text, static_cast<int>(first_rank), world, device_));
}

}  // namespace titan::debugging
