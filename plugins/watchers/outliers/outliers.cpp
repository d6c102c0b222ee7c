#include "outliers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/quantity_text.h>

namespace titan::outliers {
namespace {

constexpr size_t kMostRowsNamed = 3;

bool have_equal_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

/// "loss 9.3 is above 4.1: the mean of the last 128 steps is 3.1, sigma 0.17, limit mean + 6 sigma"
std::string text_of(const char* what, double value, const Excess& excess, const Options& options) {
  if (excess.kind == Excess::Kind::largest)
    return detail::concat(what, " ", value, " has reached ", excess.limit, ", ",
                          options.times_largest, " times the greatest of the first ",
                          options.largest_of, " steps, ", excess.largest);
  return detail::concat(what, " ", value, " is above the limit ", excess.limit, ": the last ",
                        excess.num_values, " committed steps have mean ", excess.mean,
                        " and sigma ", excess.sigma, ", and the limit is ", options.sigmas,
                        " sigma above the mean");
}

struct RowLoss {
  int64_t row = 0;
  double loss = 0;  ///< mean over the tokens of the row
};

std::string text_of(const std::vector<RowLoss>& rows) {
  std::string text;
  for (const RowLoss& row : rows)
    text += detail::concat(text.empty() ? "row " : ", row ", row.row, " (",
                           without_nan_sign(row.loss), ")");
  return text;
}

int64_t num_rows_of(const std::vector<Batch>& microbatches) {
  int64_t num_rows = 0;
  for (const Batch& batch : microbatches) num_rows += batch.tokens.size(0);
  return num_rows;
}

}  // namespace

Outliers::Outliers(const Options& options, const WatcherContext& context)
    : options_(options), context_(context), losses_(options), norms_(options) {}

/// On all ranks: their sum is the loss of the global batch.
void Outliers::reduced(Step& step) {
  loss_ = context_.mesh.group("loss").all_reduce(step.loss.normalized_sum, dist::Reduce::sum,
                                                 context_.device.device());
  skips_ = false;
  step.scalars.push_back({"outliers/skipped_steps", static_cast<double>(num_skipped_)});
}

bool Outliers::is_left_to_loss_scaler(const Step& step) const {
  return context_.smallest_gradient_scale &&
         step.batches.gradient_scale > *context_.smallest_gradient_scale && step.norm &&
         !std::isfinite(*step.norm);
}

std::string Outliers::fault_of(const Step& step) const {
  if (!std::isfinite(loss_) || (step.norm && !std::isfinite(*step.norm)))
    return options_.skip_nonfinite
               ? detail::concat("loss ", without_nan_sign(loss_), " and gradient norm ",
                                without_nan_sign(step.norm.value_or(0)), " are not finite")
               : "";
  if (const auto excess = losses_.judge(loss_)) return text_of("loss", loss_, *excess, options_);
  if (!step.norm) return "";
  const auto excess = norms_.judge(*step.norm);
  return excess ? text_of("gradient norm", *step.norm, *excess, options_) : "";
}

std::string Outliers::on_first_rank(std::string text) const {
  return context_.mesh.rank() == 0 ? std::move(text) : "";
}

Judgement Outliers::judge(const Step& step) {
  if (is_left_to_loss_scaler(step)) return {};
  const std::string fault = fault_of(step);
  const bool is_again = before_ && before_->step == step.number;
  if (is_again) return judge_again(step, fault);
  if (fault.empty()) return {};
  if (options_.rerun) {
    before_ = {step.number, loss_, step.norm};
    return {.verdict = Verdict::repeat,
            .reason = on_first_rank(detail::concat("step ", step.number, ": ", fault,
                                                   "; it is run once more to see whether the "
                                                   "machine gives the same numbers"))};
  }
  return judge_again(step, fault);
}

/// The verdict that counts: of the only run of a step, or of the second one.
Judgement Outliers::judge_again(const Step& step, const std::string& fault) {
  std::string again;
  if (before_ && before_->step == step.number) {
    const bool is_equal = have_equal_bits(before_->loss, loss_) &&
                          have_equal_bits(before_->norm.value_or(0), step.norm.value_or(0));
    again = is_equal
                ? "; the second run gave the same bits, so data or weights cause it"
                : detail::concat("; the first run gave loss ", without_nan_sign(before_->loss),
                                 " and gradient norm ", without_nan_sign(before_->norm.value_or(0)),
                                 ": suspect a fault of the machine (watcher.replay)");
  }
  if (fault.empty()) {
    if (!again.empty() && context_.mesh.rank() == 0)
      log::warn(detail::concat("step ", step.number, " is no outlier in its second run", again));
    return {};
  }
  TITAN_CHECK(num_in_row_ < options_.most_in_row, data, "step ", step.number,
              " would be skipped as an outlier after ", num_in_row_,
              " skipped steps in a row (watcher.outliers.most_in_row = ", options_.most_in_row,
              "): ", fault, again,
              ". Resume from an earlier checkpoint, lower optimizer.lr, look at the data of these "
              "steps, or raise watcher.outliers.sigmas");
  skips_ = true;
  return {.verdict = Verdict::skip,
          .reason = on_first_rank(detail::concat(
              "step ", step.number, " is skipped: ", fault, again,
              "; the weights are unchanged, and the data of this step count as used"))};
}

void Outliers::commit(const Step& step) {
  num_in_row_ = 0;
  before_.reset();
  if (std::isfinite(loss_)) losses_.add(loss_);
  if (step.norm && std::isfinite(*step.norm)) norms_.add(*step.norm);
}

void Outliers::skip(const Step& step) {
  before_.reset();
  if (!skips_) return;
  ++num_skipped_;
  ++num_in_row_;
  to_log_ = {{"outliers/skipped_steps", static_cast<double>(num_skipped_)},
             {"outliers/skipped_loss", loss_},
             {"outliers/skipped_norm", step.norm.value_or(0)}};
  if (options_.name_rows && context_.mesh.group("pp").size() == 1)
    skipped_rows_ = step.batches.microbatches;
}

void Outliers::report(int64_t step) {
  if (!to_log_.empty()) context_.log.log(step, std::exchange(to_log_, {}));
}

void Outliers::validate(int64_t step) {
  const std::vector<Batch> microbatches = std::exchange(skipped_rows_, {});
  const int64_t num_own = num_rows_of(microbatches);
  const dist::Group& dp = context_.mesh.group("dp");
  const c10::Device device = context_.device.device();
  const int64_t first = microbatches.front().places.first_row;
  const int64_t num_rows =
      dp.all_reduce(first + num_own, dist::Reduce::max, device);  // of the global batch
  at::Tensor own = at::zeros({num_rows}, at::kDouble);
  for (const Batch& microbatch : microbatches)
    for (int64_t i = 0; i < microbatch.tokens.size(0); ++i) {
      StepBatches row{.microbatches = {microbatch.rows(i, 1)}};
      row.microbatches[0].places.first_row = microbatch.places.first_row + i;
      const int64_t num_valid =
          row.microbatches[0].labels.ne(Batch::kIgnoredLabel).sum().item<int64_t>();
      row.num_valid_tokens = row.num_local_valid_tokens = std::max<int64_t>(1, num_valid);
      own[microbatch.places.first_row + i] = context_.mesh.group("cp").all_reduce(
          executor_->forward(row).normalized_sum, dist::Reduce::sum, device);
    }
  const at::Tensor all = own.to(device);
  dp.all_reduce(all, dist::Reduce::sum).wait();
  const at::Tensor host = all.cpu();
  std::vector<RowLoss> rows;
  for (int64_t i = 0; i < num_rows; ++i) rows.push_back({i, host[i].item<double>()});
  const auto rank_of = [](double loss) {  // NaN first
    return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const RowLoss& a, const RowLoss& b) {
    return rank_of(a.loss) > rank_of(b.loss);
  });
  const double median = rows[rows.size() / 2].loss;
  rows.resize(std::min(rows.size(), kMostRowsNamed));
  if (context_.mesh.rank() == 0)
    log::warn(detail::concat("step ", step, " used rows 0 to ", num_rows - 1,
                             " of its global batch; the greatest losses have ", text_of(rows),
                             ", the median is ", without_nan_sign(median)));
}

Value Outliers::state() const {
  Value state = Value::map();
  state["losses"] = losses_.state();
  state["norms"] = norms_.state();
  state["skipped"] = num_skipped_;
  state["in_row"] = num_in_row_;
  return state;
}

void Outliers::restore(const Value& state) {
  losses_.restore(state.at("losses"));
  norms_.restore(state.at("norms"));
  num_skipped_ = state.at("skipped").as_integer();
  num_in_row_ = state.at("in_row").as_integer();
}

}  // namespace titan::outliers
