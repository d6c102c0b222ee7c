#include "semi_sync.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <titan/error.h>
#include <titan/files/hash.h>
#include <titan/log.h>
#include <titan/step_phase.h>

#include "exchange.h"
#include "fragments.h"

namespace titan::semi_sync {
namespace {

using replicas::GroupLink;

// places in the tensor of counters
enum : int64_t { kLineage, kNumSyncs, kSyncedStep, kIsSent, kTokens, kNumCounters };

constexpr double kMiB = 1024.0 * 1024.0;

/// A positive number that follows from the text.
int64_t number_of(const std::string& text) {
  const auto bits = static_cast<int64_t>(std::stoull(hash64_hex(text), nullptr, 16) >> 1);
  return std::max<int64_t>(1, bits);
}

/// In which sums are sent.
at::ScalarType wire_dtype(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<std::string> trained_names(const ModelPart& part) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : part.all_parameters())
    if (!parameter.is_state()) names.push_back(parameter.name);
  return names;
}

}  // namespace

SemiSync::SemiSync(const SemiSyncOptions& options, const TransformContext& context)
    : options_(options),
      device_(context.device),
      link_(options, context.device, GroupLink::Meets::rarely) {}

SemiSync::~SemiSync() = default;

void SemiSync::apply(ModelPart& part, const TransformContext& context) {
  const std::vector<std::string> names = trained_names(part);
  const auto& modules = options_.modules_of_fragments;
  num_fragments_ = modules.empty() ? options_.num_fragments : static_cast<int64_t>(modules.size());
  const std::vector<size_t> fragments = modules.empty() ? fragments_by_layers(names, num_fragments_)
                                                        : fragments_by_modules(names, modules);
  of_fragment_.resize(static_cast<size_t>(num_fragments_));
  counters_.tokens.resize(of_fragment_.size());
  for (nn::Parameter* parameter : part.parameters()) {
    if (parameter->is_frozen() || parameter->is_state()) continue;
    const auto place = std::find(names.begin(), names.end(), parameter->name());
    TITAN_ASSERT(place != names.end(), parameter->name());
    of_fragment_[fragments[static_cast<size_t>(place - names.begin())]].push_back(
        parameters_.size());
    parameters_.push_back(parameter);
  }
  const auto state = [&](const char* name, bool is_used) {
    const at::ScalarType dtype = context.parameter_dtype == at::kDouble ? at::kDouble : at::kFloat;
    return is_used ? &add_state(name, parameters_, {.dtype = dtype}) : nullptr;
  };
  saved_counters_ = &add_state(
      "semi_sync_counters", parameters_,
      {.whole_shape = [](const Parameter&) { return std::vector<int64_t>{kNumCounters}; },
       .dtype = at::kLong});
  common_ = state("semi_sync_common", is_diloco());
  momentum_ = state("semi_sync_momentum", is_diloco() && options_.outer_momentum != 0);
  sent_ = state("semi_sync_sent", options_.delay > 0);
}

void SemiSync::join(ReplicaRun& run, dist::Mesh& mesh) {
  run_ = &run;
  mesh_ = &mesh;
  link_.join(run, mesh);
  read_counters();
  if (counters_.lineage != 0) return;
  const at::NoGradGuard no_grad;
  counters_.lineage = number_of(run.start());
  counters_.synced_step = run.step();
  if (common_)
    for (size_t i = 0; i < parameters_.size(); ++i) (*common_)[i].copy_(parameters_[i]->shard());
  write_counters();
}

void SemiSync::count(const Step& step) {
  if (!run_) return;  // a simulated step
  step_tokens_ = step.batches.num_valid_tokens;
  all_groups_loss_.reset();
  for (size_t f = 0; f < counters_.tokens.size(); ++f)
    if (!counters_.is_sent || f != fragment()) counters_.tokens[f] += step_tokens_;
  write_counters();
}

void SemiSync::after_optimizer_step() {
  if (!run_ || changes_weights_) return;
  // after a stop request the next start of the run does what is due
  static_cast<void>(synchronise());
}

bool SemiSync::between_steps() {
  return synchronise();
}

/// Does what is due after the present step. False if a stop was requested before the groups met.
bool SemiSync::synchronise() {
  const int64_t last = steps_per_sync();
  const PhaseScope phase(mesh_->recorder(), StepPhase::replicas);
  if (exchange_.valid() && steps_since_sync() >= last) finish();
  const auto must_send = [&] {
    return !counters_.is_sent && steps_since_sync() >= last - options_.delay;
  };
  if ((!has_met_ || must_send()) && !meet()) return false;
  if (must_send()) send();
  if (counters_.is_sent && !exchange_.valid()) start_exchange();
  if (exchange_.valid() && steps_since_sync() >= last) finish();
  return true;
}

bool SemiSync::meet() {
  link_.set_progress(run_->step(), lineage_text());
  changes_weights_ = true;
  const bool has_members = link_.meet();
  changes_weights_ = false;
  if (!has_members) return false;
  has_met_ = true;
  if (link_.has_taken()) {
    read_counters();
    std::fill(counters_.tokens.begin(), counters_.tokens.end(), 0);
  }
  // groups that train apart get the same rows: when they meet, one takes over from the other
  if (std::exchange(epoch_, link_.epoch()) != link_.epoch())
    counters_.lineage = number_of(lineage_text() + "/with/" + epoch_);
  write_counters();
  return true;
}

/// Keeps what this group sends, so that the next steps can change the weights.
void SemiSync::send() {
  const at::NoGradGuard no_grad;
  if (sent_)
    for (const size_t i : of_fragment_[fragment()]) {
      const at::Tensor& weight = parameters_[i]->shard();
      (*sent_)[i].copy_(weight);
      if (common_) (*sent_)[i].neg_().add_((*common_)[i]);
    }
  counters_.is_sent = true;
  write_counters();
}

/// This group's share of the average, by its tokens.
void SemiSync::start_exchange() {
  const at::NoGradGuard no_grad;
  const dist::Group& group = link_.group();
  const int64_t own = counters_.tokens[fragment()];
  const int64_t all =
      group.size() == 1 ? own : group.all_reduce(own, dist::Reduce::sum, device_.device());
  const double share = all > 0 ? static_cast<double>(own) / static_cast<double>(all)
                               : 1.0 / static_cast<double>(group.size());
  in_exchange_.clear();
  for (const size_t i : of_fragment_[fragment()]) {
    at::Tensor value;
    if (sent_) {
      value = (*sent_)[i].to(wire_dtype((*sent_)[i]), /*non_blocking=*/false, /*copy=*/true);
    } else {
      const at::Tensor& weight = parameters_[i]->shard();
      value = weight.detach().to(wire_dtype(weight), /*non_blocking=*/false, /*copy=*/true);
      if (common_) value.neg_().add_((*common_)[i]);
    }
    in_exchange_.push_back(value.mul_(share));
  }
  const bool is_beside = steps_since_sync() < steps_per_sync();
  if (!device_.device().is_cpu()) device_.synchronize();  // the thread has a stream of its own
  exchange_ =
      std::async(is_beside ? std::launch::async : std::launch::deferred, [this] { exchange(); });
}

/// [a thread of its own, if there is a delay]
void SemiSync::exchange() {
  c10::OptionalDeviceGuard guard;
  if (!device_.device().is_cpu()) guard.reset_device(device_.device());
  if (options_.should_quantize)
    sum_over_quantized(link_.group(), in_exchange_, options_.quantized_type);
  else
    sum_over(link_.group(), in_exchange_, options_.bucket_size.count);
  if (!device_.device().is_cpu()) device_.synchronize();
}

void SemiSync::finish() {
  const size_t done = fragment();
  bool is_summed = true;
  try {
    exchange_.get();
  } catch (const std::exception& error) {
    log::warn(std::string("the exchange between replica groups failed: ") + error.what());
    is_summed = false;
  }
  average_loss();
  const bool yes = link_.vote(is_summed);
  changes_weights_ = true;
  run_->change_weights([&] {
    const at::NoGradGuard no_grad;
    if (yes)
      take_average(done);
    else
      return_to_common(done);
  });
  changes_weights_ = false;
  in_exchange_.clear();
  const std::string result = yes ? "/yes/" : "/no/";
  counters_.lineage =
      number_of(lineage_text() + result + std::to_string(run_->step()) + "/" + epoch_);
  counters_.synced_step = run_->step();
  counters_.is_sent = false;
  if (yes) ++counters_.num_syncs;
  if (yes || is_diloco()) counters_.tokens[done] = 0;
  if (!yes) {
    all_groups_loss_.reset();
    if (mesh_->rank() == 0)
      log::warn("the replica groups did not synchronise after step " +
                std::to_string(run_->step()) + ": one of them was lost; they try again in " +
                std::to_string(steps_per_sync()) + " steps");
  }
  write_counters();
}

void SemiSync::take_average(size_t fragment) {
  for (size_t n = 0; n < in_exchange_.size(); ++n) {
    const size_t i = of_fragment_[fragment][n];
    const at::Tensor& weight = parameters_[i]->shard();
    const at::Tensor& average = in_exchange_[n];
    if (!is_diloco()) {
      weight.copy_(average);
      continue;
    }
    const at::Tensor& common = (*common_)[i];
    at::Tensor change = average;
    if (momentum_) {
      const at::Tensor& momentum = (*momentum_)[i];
      momentum.mul_(options_.outer_momentum).add_(average);
      change = options_.nesterov ? average.add(momentum, options_.outer_momentum) : momentum;
    }
    common.sub_(change, options_.outer_lr);
    if (options_.alpha == 0)
      weight.copy_(common);
    else
      weight.mul_(options_.alpha).add_(common, 1 - options_.alpha);
  }
}

void SemiSync::return_to_common(size_t fragment) {
  if (common_)
    for (const size_t i : of_fragment_[fragment]) parameters_[i]->shard().copy_((*common_)[i]);
}

/// The loss of the present step, over all rows of all groups.
void SemiSync::average_loss() {
  const c10::Device device = device_.device();
  const dist::Group& group = link_.group();
  const double own = mesh_->group("loss").all_reduce(loss_, dist::Reduce::sum, device);
  double sum = own * static_cast<double>(step_tokens_);
  int64_t tokens = step_tokens_;
  if (group.size() > 1) {
    sum = group.all_reduce(sum, dist::Reduce::sum, device);
    tokens = group.all_reduce(tokens, dist::Reduce::sum, device);
  }
  all_groups_loss_.reset();
  if (tokens > 0) all_groups_loss_ = sum / static_cast<double>(tokens);
}

std::vector<Scalar> SemiSync::scalars() {
  std::vector<Scalar> scalars;
  if (all_groups_loss_) scalars.push_back({"loss_metrics/global_avg_loss", *all_groups_loss_});
  const int64_t bytes = link_.group().recorder().total_bytes();
  scalars.push_back({"comm_metrics/sent_to_groups(MiB)",
                     static_cast<double>(bytes - std::exchange(logged_bytes_, bytes)) / kMiB});
  return scalars;
}

/// A rank of a pipeline may have no parameter of a fragment: it takes the greatest number of all.
void SemiSync::read_counters() {
  std::vector<int64_t> numbers(kTokens + counters_.tokens.size());
  for (size_t f = 0; f < of_fragment_.size(); ++f) {
    if (of_fragment_[f].empty()) continue;
    const at::Tensor saved = (*saved_counters_)[of_fragment_[f].front()].cpu();
    const auto* first = saved.const_data_ptr<int64_t>();
    std::copy(first, first + kTokens, numbers.begin());
    numbers[static_cast<size_t>(kTokens) + f] = first[kTokens];
  }
  for (int64_t& number : numbers)
    number = mesh_->group("world").all_reduce(number, dist::Reduce::max, device_.device());
  counters_.lineage = numbers[kLineage];
  counters_.num_syncs = numbers[kNumSyncs];
  counters_.synced_step = numbers[kSyncedStep];
  counters_.is_sent = numbers[kIsSent] != 0;
  std::copy(numbers.begin() + kTokens, numbers.end(), counters_.tokens.begin());
}

/// One copy to the device, then one for all tensors.
void SemiSync::write_counters() {
  const at::NoGradGuard no_grad;
  at::Tensor rows = at::empty({num_fragments_, kNumCounters}, at::kLong);
  auto* number = rows.mutable_data_ptr<int64_t>();
  for (const int64_t tokens : counters_.tokens)
    for (const int64_t value : {counters_.lineage, counters_.num_syncs, counters_.synced_step,
                                int64_t{counters_.is_sent}, tokens})
      *number++ = value;
  rows = rows.to(device_.device());
  std::vector<at::Tensor> saved, values;
  for (size_t f = 0; f < of_fragment_.size(); ++f)
    for (const size_t i : of_fragment_[f]) {
      saved.push_back((*saved_counters_)[i]);
      values.push_back(rows[static_cast<int64_t>(f)]);
    }
  if (!saved.empty()) at::_foreach_copy_(saved, values);
}

std::string SemiSync::lineage_text() const {
  return std::to_string(counters_.lineage);
}

int64_t SemiSync::steps_since_sync() const {
  return run_->step() - counters_.synced_step;
}

size_t SemiSync::fragment() const {
  return static_cast<size_t>(counters_.num_syncs % num_fragments_);
}

}  // namespace titan::semi_sync
