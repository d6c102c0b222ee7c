#include "replay.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/host.h>
#include <titan/program/stop_request.h>

#include "copies.h"
#include "exchange.h"

namespace titan::replay {
namespace {

constexpr int64_t kMostPlaceBytes = 128;

/// `own` of every rank, at most kMostPlaceBytes of each.
std::vector<std::string> gather_texts(const std::string& own, const dist::Group& world,
                                      c10::Device device) {
  const at::Tensor mine = at::zeros({1, kMostPlaceBytes}, at::kByte);
  std::memcpy(mine.mutable_data_ptr(), own.data(),
              std::min(own.size(), static_cast<size_t>(kMostPlaceBytes)));
  const at::Tensor all = at::zeros({world.size(), kMostPlaceBytes},
                                   at::TensorOptions().dtype(at::kByte).device(device));
  world.all_gather(all, mine.to(device)).wait();
  const at::Tensor host = all.cpu();
  std::vector<std::string> texts;
  for (int64_t rank = 0; rank < world.size(); ++rank) {
    const char* begin = static_cast<const char*>(host[rank].const_data_ptr());
    texts.emplace_back(begin, ::strnlen(begin, kMostPlaceBytes));
  }
  return texts;
}

const char* words_of(Odd odd) {
  switch (odd) {
    case Odd::none:
      return "";
    case Odd::first:
      return "its first run of three gave other bits than the two after it, which agree";
    case Odd::second:
      return "its second run of three gave other bits than the other two, which agree";
    case Odd::third:
      return "its third run of three gave other bits than the two before it, which agree";
    case Odd::all:
      return "its three runs gave three different results";
    case Odd::of_neighbours:
      return "its runs are equal, but two other ranks gave other bits for the same rows";
    case Odd::of_pair:
      return "its runs are equal, but another rank gave other bits for the same rows; one of the "
             "two is wrong";
  }
  return "";
}

}  // namespace

/// The states of LibTorch's random generators at the begin of a run, so that every run draws the
/// same numbers.
class Replay::Draws {
 public:
  explicit Draws(c10::Device device) : devices_{c10::Device(c10::kCPU)} {
    if (!device.is_cpu()) devices_.push_back(device);
    for (const c10::Device place : devices_) {
      at::Generator generator = at::globalContext().defaultGenerator(place);
      const std::lock_guard lock(generator.mutex());
      states_.push_back(generator.get_state());
    }
  }
  /// [collective] Those of the next rank.
  Draws of_next(const dist::Group& dp, c10::Device device) const {
    Draws next = *this;
    for (at::Tensor& state : next.states_) state = of_next_rank(state, dp, device);
    return next;
  }
  void restore() const {
    for (size_t i = 0; i < devices_.size(); ++i) {
      at::Generator generator = at::globalContext().defaultGenerator(devices_[i]);
      const std::lock_guard lock(generator.mutex());
      generator.set_state(states_[i]);
    }
  }

 private:
  std::vector<c10::Device> devices_;
  std::vector<at::Tensor> states_;
};

Replay::Replay(const Options& options, const WatcherContext& context)
    : options_(options), context_(context) {}

void Replay::attach(ModelPart& part) {
  part_ = &part;
  recorder_.watch_outputs(part);
}

void Replay::start(const WatcherStart& start) {
  start_ = monotonic_seconds();
  last_equal_ = start.resumed_step;
  const c10::Device device = context_.device.device();
  counts_.set_places(
      gather_texts(host_name() + ", " + device.str(), context_.mesh.group("world"), device));
}

void Replay::begin(Step& step) {
  replays_ = step.number % options_.interval == 0 || step.attempt > 1;
  findings_.clear();
  is_said_ = false;
  step.scalars.push_back({"replay/faults", static_cast<double>(counts_.total())});
  step.scalars.push_back(
      {"replay/time(%)", 100 * replayed_ / std::max(1e-9, monotonic_seconds() - start_)});
}

StepLoss Replay::run_again(const StepBatches& batches, const Draws& draws, RunBits& bits) {
  part_->clear_gradients();
  draws.restore();
  recorder_.begin();
  const StepLoss loss = inner().forward_backward(batches);
  bits = recorder_.end(loss);
  return loss;
}

/// All ranks run the same number of times. The last run is of this rank's own microbatches.
StepLoss Replay::forward_backward(const StepBatches& batches) {
  if (!replays_) return inner().forward_backward(batches);
  const c10::Device device = context_.device.device();
  const dist::Group& dp = context_.mesh.group("dp");
  const Draws draws(device);
  RunBits first, second, third, other;
  run_again(batches, draws, first);
  const double begin = monotonic_seconds();
  const bool exchanges = options_.exchange && dp.size() > 1 && can_exchange(batches);
  if (exchanges) run_again(of_next_rank(batches, dp, device), draws.of_next(dp, device), other);
  StepLoss loss = run_again(batches, draws, second);
  const int64_t differs =
      context_.mesh.group("world").all_reduce(int64_t{first != second}, dist::Reduce::max, device);
  if (differs) {
    loss = run_again(batches, draws, third);
    findings_ = look_again(first, second, third);
  } else if (exchanges) {
    findings_ = look_at_exchanged(first, other);
  }
  if (!findings_.empty()) {
    counts_.add(findings_);
    has_fault_ = true;
    is_to_end_ |= options_.end && has_lasting();
  }
  replayed_ += monotonic_seconds() - begin;
  return loss;
}

std::vector<Finding> Replay::look_again(const RunBits& first, const RunBits& second,
                                        const RunBits& third) const {
  const Odd odd = odd_of(first == second, first == third, second == third);
  const Difference own = difference_of(first, first == second ? third : second);
  std::vector<Finding> findings;
  for (const auto& row :
       gather({static_cast<int64_t>(odd), own.output, own.gradient, int64_t{own.is_of_loss}}))
    findings.push_back({static_cast<Odd>(row[0]), row[1], row[2], row[3] != 0});
  return findings;
}

/// Empty if no rank differs.
std::vector<Finding> Replay::look_at_exchanged(const RunBits& own, const RunBits& other) const {
  const c10::Device device = context_.device.device();
  const dist::Group& dp = context_.mesh.group("dp");
  const Difference found = difference_to_next(own, other, dp, device);
  const int64_t next =
      of_next_rank(at::full({1}, context_.mesh.rank(), at::kLong), dp, device).item<int64_t>();
  std::vector<Exchanged> exchanged;
  bool is_any = false;
  for (const auto& row : gather({next, found.output, found.gradient, int64_t{found.is_of_loss}})) {
    exchanged.push_back({row[0], {row[1], row[2], row[3] != 0}});
    is_any |= exchanged.back().difference.is_any();
  }
  return is_any ? blame(exchanged) : std::vector<Finding>();
}

std::vector<std::vector<int64_t>> Replay::gather(const std::vector<int64_t>& own) const {
  const dist::Group& world = context_.mesh.group("world");
  const c10::Device device = context_.device.device();
  const auto size = static_cast<int64_t>(own.size());
  const at::Tensor all =
      at::zeros({world.size(), size}, at::TensorOptions().dtype(at::kLong).device(device));
  world.all_gather(all, at::tensor(own, at::kLong).view({1, size}).to(device)).wait();
  const at::Tensor host = all.cpu();
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t* row = host.const_data_ptr<int64_t>();
       rows.size() < static_cast<size_t>(world.size()); row += size)
    rows.emplace_back(row, row + size);
  return rows;
}

/// The forward comes first: a wrong output also changes the gradients.
std::string Replay::text_of(size_t rank, const Finding& finding) const {
  const bool is_lasting = counts_.of(rank) >= options_.lasting;
  const std::string where = finding.output >= 0     ? recorder_.name(finding.output)
                            : finding.is_of_loss    ? "the loss"
                            : finding.gradient >= 0 ? recorder_.name(finding.gradient)
                                                    : "";
  return detail::concat("rank ", rank, " (", counts_.place(rank), "): ", words_of(finding.odd),
                        "; the first difference is in ", where, "; ",
                        is_lasting ? "a lasting fault" : "a passing fault so far", ", number ",
                        counts_.of(rank), " of this rank");
}

bool Replay::has_lasting() const {
  for (size_t rank = 0; rank < findings_.size(); ++rank)
    if (findings_[rank].odd != Odd::none && counts_.of(rank) >= options_.lasting) return true;
  return false;
}

std::string Replay::text_of_findings(const Step& step) const {
  std::string found;
  size_t num_odd = 0;
  for (size_t rank = 0; rank < findings_.size(); ++rank) {
    if (findings_[rank].odd == Odd::none) continue;
    ++num_odd;
    found += "\n  " + text_of(rank, findings_[rank]);
  }
  if (num_odd == findings_.size() && num_odd > 1)
    found +=
        "\n  all ranks differ: a kernel that is not deterministic is likelier than a fault of the "
        "machines";
  return detail::concat("step ", step.number, " gave different bits when it was run again:", found);
}

Judgement Replay::judge(const Step& step) {
  if (findings_.empty()) return {};
  is_said_ = true;
  const bool is_last = step.attempt >= options_.attempts;
  const std::string what = text_of_findings(step);
  TITAN_CHECK(!is_last || is_to_end_, data, what, "\nNo attempt of ", options_.attempts,
              " (watcher.replay.attempts) was reproduced; the weights were not changed by this "
              "step. Start the same command again without that device");
  const char* consequence = is_last ? "\nthe step is skipped, and the run ends after a checkpoint"
                                    : "\nthe step is repeated";
  return {.verdict = is_last ? Verdict::skip : Verdict::repeat,
          .reason = context_.mesh.rank() == 0 ? what + consequence : ""};
}

/// Findings of an attempt that another member had repeated or skipped before this one was asked.
void Replay::say_rest(const Step& step) {
  if (!findings_.empty() && !is_said_ && context_.mesh.rank() == 0)
    log::warn(text_of_findings(step));
  is_said_ = true;
}

void Replay::settle(const Step& step) {
  say_rest(step);
  counts_.keep();
  if (!is_to_end_) return;
  if (context_.mesh.rank() == 0)
    log::warn(
        detail::concat("a rank has a lasting fault (watcher.replay.end): the run ends after "
                       "step ",
                       step.number, " with exit code ", kExitFaultyDevice,
                       "; start the same command again without that device"));
  request_stop(kExitFaultyDevice);
}

void Replay::report(int64_t step) {
  if (!has_fault_) return;
  has_fault_ = false;
  const Scalar total{"replay/faults", static_cast<double>(counts_.total())};
  context_.log.log(step, {&total, 1});
}

bool Replay::validates(int64_t step) const {
  return options_.compare_weights_every > 0 && step % options_.compare_weights_every == 0;
}

void Replay::validate(int64_t step) {
  const std::vector<CopyHash> own = copies_of(*part_);
  const CopyReport report =
      compare_copies(gather_copies(own, context_.mesh.group("world"), context_.device.device()));
  if (report.num_copied == 0 && last_equal_ == 0 && context_.mesh.rank() == 0)
    log::warn(
        "watcher.replay.compare_weights_every has no effect: no two ranks hold the same "
        "weights");
  if (report.num_different == 0) {
    last_equal_ = step;
    return;
  }
  std::string ranks;
  for (const int64_t rank : report.minority)
    ranks += detail::concat(ranks.empty() ? "" : ", ", "rank ", rank, " (",
                            counts_.place(static_cast<size_t>(rank)), ")");
  std::string names;
  for (const CopyHash& copy : own)
    if (names.empty() && std::binary_search(report.keys.begin(), report.keys.end(), copy.key))
      names = name_of(*part_, copy.key);
  fail(ErrorKind::data, "after step ", step, " copies of ", report.num_different, " of ",
       report.num_copied, " weights differ between ranks",
       names.empty() ? "" : ", the first of this rank is '" + names + "'",
       report.has_tie ? "; no majority, the copies are of " : "; the minority is ", ranks,
       ". This step is not saved; the weights were last found equal after step ", last_equal_,
       ". Resume from a checkpoint up to that step, without the device of the minority");
}

}  // namespace titan::replay
