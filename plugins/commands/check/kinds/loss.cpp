// Tests of losses, on logits that are drawn here; of losses over sequences, on log-likelihoods.
#include <cmath>
#include <random>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <titan/loss.h>
#include <titan/reference_loss.h>
#include <titan/sequence_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include "kit/jobs.h"

namespace titan::conformance::loss_kind {
namespace {

constexpr int64_t kVocab = 11, kRows = 7;

at::Tensor drawn(uint64_t seed, at::IntArrayRef shape, double scale = 1) {
  std::mt19937_64 draw(seed);
  std::normal_distribution<double> normal(0, scale);
  at::Tensor tensor = at::empty(shape, at::kDouble);
  auto* data = tensor.mutable_data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = normal(draw);
  return tensor;
}

/// One loss with inputs in float64: rows of logits, or one row of log-likelihoods that holds pairs
/// of documents.
struct Input {
  explicit Input(TestContext& test) : loss(test.make<Loss>({kVocab})) {
    std::mt19937_64 draw(test.seed());
    sequences = dynamic_cast<SequenceLoss*>(loss.get());
    distillation = dynamic_cast<DistillationLoss*>(loss.get());
    if (sequences) {
      x = drawn(test.seed(), {1, 8}).abs().neg();
      reference = drawn(test.seed() + 1, {1, 8}).abs().neg();
      batch.labels = at::empty({1, 8}, at::kLong);
      batch.tokens = at::empty({1, 8}, at::kLong).zero_();
      batch.documents = at::empty({1, 8}, at::kInt);
      for (int64_t i = 0; i < 8; ++i) {
        batch.documents.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(i / 4);
        batch.labels.mutable_data_ptr<int64_t>()[i] = i % 4 == 0 ? Batch::kIgnoredLabel : i;
      }
      x.masked_fill_(batch.labels.eq(Batch::kIgnoredLabel), 0);
      return;
    }
    x = drawn(test.seed(), {kRows, kVocab});
    reference = drawn(test.seed() + 1, {kRows, kVocab});
    labels = at::empty({kRows}, at::kLong);
    for (int64_t i = 0; i < kRows; ++i)
      labels.mutable_data_ptr<int64_t>()[i] = static_cast<int64_t>(draw() % kVocab);
    labels.mutable_data_ptr<int64_t>()[2] = Batch::kIgnoredLabel;
  }

  /// The loss of rows [first, first + count); of a loss over sequences always of all.
  RowsLoss of(const at::Tensor& values, int64_t first = 0, int64_t count = kRows) const {
    if (sequences) {
      Batch with = batch;
      if (dynamic_cast<ComparesWithReference*>(loss.get())) with.reference = reference;
      return sequences->of_sequences(values, with);
    }
    const auto cut = [&](const at::Tensor& tensor) { return tensor.narrow(0, first, count); };
    if (distillation) return distillation->of_rows_beside(cut(values), cut(reference), cut(labels));
    return loss->of_rows(cut(values), cut(labels));
  }
  double sum(const at::Tensor& values) const { return of(values).sum.item<double>(); }

  std::unique_ptr<Loss> loss;
  SequenceLoss* sequences = nullptr;
  DistillationLoss* distillation = nullptr;
  at::Tensor x, reference, labels;
  Batch batch;
};

at::Tensor gradient_of(const Input& input) {
  at::Tensor x = input.x.detach().clone().requires_grad_();
  torch::autograd::backward({input.of(x).sum}, {});
  return x.grad();
}

void finite(TestContext& test) {
  const Input input(test);
  for (const double scale : {1.0, 0.0, 1000.0}) {  // e^1000 is no double
    const RowsLoss loss = input.of(input.x * scale);
    test.expect(loss.sum.defined() && loss.sum.numel() == 1, "the sum is not one number");
    test.expect(std::isfinite(loss.sum.item<double>()), "the sum is ", loss.sum.item<double>(),
                " for logits of size ", scale);
  }
}

void parts(TestContext& test) {
  const Input input(test);
  const std::vector<std::string> names = input.loss->part_names();
  const RowsLoss loss = input.of(input.x);
  test.expect(loss.parts.size() == names.size(), "part_names() has ", names.size(),
              " names and the loss ", loss.parts.size(), " parts");
  for (size_t i = 0; i < names.size(); ++i) {
    test.expect(!names[i].empty(), "a part has no name");
    test.expect(loss.parts[i].defined() && loss.parts[i].numel() == 1 &&
                    std::isfinite(loss.parts[i].item<double>()),
                "the part '", names[i], "' is not one finite number");
  }
}

void likelihood_part(TestContext& test) {
  const Input input(test);
  const std::vector<std::string> names = input.loss->part_names();
  const auto found = std::find(names.begin(), names.end(), Loss::kNegativeLogLikelihood);
  if (found == names.end() || input.sequences) throw NotApplicable{"it has no part 'nll'"};
  const at::Tensor ignored = input.labels.eq(Batch::kIgnoredLabel);
  const at::Tensor log_p = at::log_softmax(input.x, 1)
                               .gather(1, input.labels.masked_fill(ignored, 0).unsqueeze(1))
                               .squeeze(1);
  const double expected = -log_p.masked_fill(ignored, 0).sum().item<double>();
  const double part =
      input.of(input.x).parts[static_cast<size_t>(found - names.begin())].item<double>();
  test.measure("difference of the part nll", std::fabs(part - expected) / expected);
}

void gradient(TestContext& test) {
  const Input input(test);
  const at::Tensor gradient = gradient_of(input);
  test.expect(gradient.defined(), "the sum has no gradient in its input");
  test.expect(gradient.isfinite().all().item<bool>(), "a gradient is not finite");
  const double largest = gradient.abs().max().item<double>();
  test.expect(largest > 0, "all gradients are 0");
  const auto* by_autograd = gradient.const_data_ptr<double>();
  constexpr double kStep = 1e-5;
  double most = 0;
  for (int64_t i = 0; i < input.x.numel(); ++i) {
    at::Tensor above = input.x.clone(), below = input.x.clone();
    above.view({-1}).mutable_data_ptr<double>()[i] += kStep;
    below.view({-1}).mutable_data_ptr<double>()[i] -= kStep;
    const double numeric = (input.sum(above) - input.sum(below)) / (2 * kStep);
    const bool is_ignored =
        input.sequences && input.batch.labels.const_data_ptr<int64_t>()[i] == Batch::kIgnoredLabel;
    if (!is_ignored) most = std::max(most, std::fabs(by_autograd[i] - numeric));
  }
  test.measure("difference from finite differences", most / largest);
}

void ignored_labels(TestContext& test) {
  const Input input(test);
  if (input.sequences) throw NotApplicable{"it is a loss over sequences"};
  const at::Tensor gradient = gradient_of(input);
  test.expect(gradient[2].abs().max().item<double>() == 0,
              "a token without a label has a gradient that is not 0");
  test.expect(input.of(input.x, 2, 1).sum.item<double>() == 0,
              "a token without a label has a loss that is not 0");
  at::Tensor other = input.x.clone();
  other[2].add_(5);
  test.measure("change of the sum with the logits of an ignored token",
               std::fabs(input.sum(other) - input.sum(input.x)) / std::fabs(input.sum(input.x)));
}

void adds_up(TestContext& test) {
  const Input input(test);
  if (input.sequences) throw NotApplicable{"it is a loss over sequences"};
  double sum = 0;
  for (int64_t row = 0; row < kRows; ++row) sum += input.of(input.x, row, 1).sum.item<double>();
  const double whole = input.sum(input.x);
  test.measure("difference of the sum over single tokens",
               std::fabs(sum - whole) / std::fabs(whole));
}

void inputs_kept(TestContext& test) {
  const Input input(test);
  const at::Tensor x = input.x.clone(), labels = input.labels.defined() ? input.labels.clone() : x;
  const double first = input.sum(input.x);
  test.expect(x.equal(input.x), "it changed its input");
  test.expect(!input.labels.defined() || labels.equal(input.labels), "it changed the labels");
  test.expect(input.sum(input.x) == first, "a second call with the same input gives another sum");
}

void meta_device(TestContext& test) {
  const Input input(test);
  if (input.sequences || input.distillation) throw NotApplicable{"it is no loss over tokens"};
  const RowsLoss loss = input.loss->of_rows(input.x.to(c10::kMeta), input.labels.to(c10::kMeta));
  test.expect(loss.sum.defined() && loss.sum.is_meta() && loss.sum.numel() == 1,
              "on the meta device the sum is not one number on the meta device");
}

/// A job with the loss; one over sequences needs data that the kit does not make.
Job loss_job(TestContext& test, const std::string& name) {
  const Input input(test);
  if (input.sequences || input.distillation)
    throw NotApplicable{"a loss with sequences or a reference model needs data of its own"};
  return job_with(test, name).exact().saves();
}

void layouts(TestContext& test) {
  Job job = loss_job(test, "one");
  const JobRun one = job.run();
  measure_runs(
      test, job.named("fsdp").ranks(2).set("parallelism.data_parallel_shard_degree", 2).run(), one);
  measure_runs(
      test, job.named("tensor").ranks(2).set("parallelism.tensor_parallel_degree", 2).run(), one);
}

void accumulation(TestContext& test) {
  Job job = loss_job(test, "whole").set("training.local_batch_size", 4);
  const JobRun whole = job.run();
  measure_runs(test, job.named("parts").set("training.local_batch_size", 1).run(), whole);
}

}  // namespace
}  // namespace titan::conformance::loss_kind

namespace titan::conformance {

std::vector<Test> loss_tests() {
  using namespace loss_kind;
  constexpr const char* kKind = "loss";
  return {
      {kKind, "finite", "The sum is one finite number for small, zero and large logits.", finite},
      {kKind, "parts", "There are as many parts as part_names(), and each is one finite number.",
       parts},
      {kKind, "likelihood_part",
       "A part named nll is the negative log-likelihood of the labels, in nats.", likelihood_part,
       "", 1e-9},
      {kKind, "gradient",
       "The gradients are finite, not all 0, and equal finite differences in float64.", gradient,
       "", 1e-6},
      {kKind, "ignored_labels", "A token without a label adds nothing to the sum or to gradients.",
       ignored_labels, "", 1e-12},
      {kKind, "adds_up", "The sum over tokens equals the sum of the losses of single tokens.",
       adds_up, "", 1e-12},
      {kKind, "inputs_kept",
       "A call changes neither logits nor labels, and a second call gives the same sum.",
       inputs_kept},
      {kKind, "meta_device", "On the meta device the sum is one number on the meta device.",
       meta_device},
      {kKind, "layouts",
       "Float64 runs over 2 ranks of FSDP and of tensor parallelism give losses and weights of one "
       "rank.",
       layouts, "", 1e-9},
      {kKind, "accumulation",
       "A float64 run with 4 microbatches per step gives the losses and weights of 1 microbatch.",
       accumulation, "", 1e-9},
  };
}

}  // namespace titan::conformance
