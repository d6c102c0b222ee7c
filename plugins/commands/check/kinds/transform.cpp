// Tests of converters, activation checkpointing and compile backends.
#include <malloc.h>

#include <cmath>
#include <iterator>

#include <titan/transform.h>

#include "kit/layouts.h"
#include "kit/toy.h"

namespace titan::conformance::transform_kind {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

Job without_it(TestContext& test, const std::string& name) {
  return plain_job(test, name).without("compile");
}

// converters

void converter_acts(TestContext& test) {
  const JobRun with = job_with(test, "with").saves().run();
  const JobRun plain = without_it(test, "plain").saves().run();
  const auto tensors = with.tensors(), others = plain.tensors();
  const bool has_other_names =
      !std::equal(tensors.begin(), tensors.end(), others.begin(), others.end(),
                  [](const auto& a, const auto& b) { return a.first == b.first; });
  test.expect(has_other_names || with.losses() != plain.losses(),
              "a run with the converter has the losses and the tensors of a run without it");
}

void converter_values(TestContext& test) {
  const JobRun with = job_with(test, "with").run(), plain = without_it(test, "plain").run();
  const double first = with.losses().front(), other = plain.losses().front();
  test.measure("difference of the first loss", std::fabs(first - other) / other);
}

/// A pipeline is an executor, and a job has one.
void expect_no_second_executor(const TestContext& test, const Axis& axis) {
  if (std::string_view(axis.degree) == kPipeline.degree && test.has("StepExecutor") &&
      !test.has("ExecutorWrapper"))
    throw NotApplicable{"it is an executor, and a job with a pipeline has one already"};
}

/// A float32 run over an axis against one rank.
void compare_axis(TestContext& test, const Axis& axis) {
  expect_no_second_executor(test, axis);
  Job job = job_with(test, "one");
  const JobRun one = job.run();
  measure_runs(test, with_axis(job.named("two"), axis).run(), one, false);
}

void over_fsdp(TestContext& test) {
  compare_axis(test, kFsdp);
}
void over_tensor(TestContext& test) {
  compare_axis(test, kTensor);
}
void over_pipeline(TestContext& test) {
  compare_axis(test, kPipeline);
}

void recomputed(TestContext& test) {
  Job job = job_with(test, "kept").saves();
  const JobRun kept = job.run();
  expect_same_bits(test, job.named("recomputed").set("activation_checkpoint.mode", "full").run(),
                   kept, "recomputed and kept activations");
}

void accumulated(TestContext& test) {
  Job job = job_with(test, "whole").set("training.local_batch_size", 4);
  const JobRun whole = job.run();
  measure_runs(test, job.named("parts").set("training.local_batch_size", 1).run(), whole, false);
}

void resumed(TestContext& test) {
  expect_resumes(test, job_with(test, "through"));
}

// activation checkpointing

/// Losses, and saved tensors, of a run with the plugin against one without.
void compare_with_plain(TestContext& test, const Axis* axis) {
  if (axis) expect_no_second_executor(test, *axis);
  Job with = job_with(test, "with").saves();
  Job plain = plain_job(test, "plain").without("activation_checkpoint").saves();
  if (axis) with = with_axis(with, *axis), plain = with_axis(plain, *axis);
  measure_runs(test, with.run(), plain.run());
}

void checkpoint_values(TestContext& test) {
  compare_with_plain(test, nullptr);
}
void checkpoint_fsdp(TestContext& test) {
  compare_with_plain(test, &kFsdp);
}
void checkpoint_tensor(TestContext& test) {
  compare_with_plain(test, &kTensor);
}
void checkpoint_pipeline(TestContext& test) {
  compare_with_plain(test, &kPipeline);
}

/// Bytes that a forward of the toy model keeps for its backward.
double kept_bytes(TestContext& test, bool with_plugin) {
  const OneRank rank;
  ModelPart part(toy_layers());
  std::unique_ptr<ModelTransform> transform;
  if (with_plugin) {
    transform = test.make<ModelTransform>(rank.context());
    transform->apply(part, rank.context());
  }
  part.materialize(c10::kCPU, at::kFloat, 1);
  const Batch batch = drawn_batch(1, 16, 512, kToyVocab);
  const auto used = [] {
    const struct mallinfo2 heap = ::mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  { loss_of(part, batch); }  // first use
  const double before = used();
  const at::Tensor loss = loss_of(part, batch);
  return used() - before;
}

void saves_memory(TestContext& test) {
  const double plain = kept_bytes(test, false), with = kept_bytes(test, true);
  test.measure("kept bytes, relative to those without it", with / plain);
}

// compile backends

void backend_acts(TestContext& test) {
  Job job = job_with(test, "job").steps(1);
  const auto mentions = [&](bool prints) {
    const ProgramRun run = job.set("model.print_after_conversion", prints).run().program();
    return count_of(run.output + run.errors, test.subject().name);
  };
  test.expect(mentions(true) > mentions(false),
              "model.print_after_conversion names it as the owner of no kernel");
}

void backend_values(TestContext& test) {
  measure_runs(test, job_with(test, "with").run(), without_it(test, "plain").run(), false);
}

void backend_exact(TestContext& test) {
  measure_runs(test, job_with(test, "with").exact().saves().run(),
               without_it(test, "plain").exact().saves().run());
}

void backend_shapes(TestContext& test) {
  const auto validated = [](Job job) {
    return job.set("validation.enable", true)
        .set("validation.freq", 1)
        .set("validation.steps", 1)
        .set("validation.dataset", "synthetic")
        .set("validation.seq_len", 24)
        .set("validation.local_batch_size", 1);
  };
  const JobRun with = validated(job_with(test, "with")).run();
  const JobRun plain = validated(without_it(test, "plain")).run();
  const std::vector<double> losses = with.series("validation_metrics/loss");
  test.expect(!losses.empty(), "the run logged no validation loss");
  test.measure("difference of losses on other shapes",
               difference(losses, plain.series("validation_metrics/loss")));
}

}  // namespace
}  // namespace titan::conformance::transform_kind

namespace titan::conformance {

std::vector<Test> transform_tests() {
  using namespace transform_kind;
  constexpr const char *kConverter = "converter", *kCheckpoint = "activation_checkpoint",
                       *kBackend = "compile_backend";
  std::vector<Test> tests = {
      {kConverter, "acts",
       "A run with the converter differs in losses or in names of tensors from a run without it.",
       converter_acts},
      {kConverter, "values",
       "The first loss differs from that of a run without the converter by at most the tolerance.",
       converter_values, "", 0.05},
      {kConverter, "layout_fsdp",
       "A float32 run over 2 ranks of FSDP gives the losses of one rank.", over_fsdp, "", 1e-4},
      {kConverter, "layout_tensor",
       "A float32 run over 2 ranks of tensor parallelism gives the losses of one rank.",
       over_tensor, "", 1e-2},
      {kConverter, "layout_pipeline",
       "A float32 run over 2 ranks of a pipeline gives the losses of one rank.", over_pipeline, "",
       1e-4},
      {kConverter, "recomputed",
       "A run that recomputes all blocks equals one that keeps their activations bit for bit.",
       recomputed},
      {kConverter, "accumulation",
       "A run with 4 microbatches per step gives the losses of 1 microbatch.", accumulated, "",
       1e-2},
      {kConverter, "resume",
       "A run that resumes from step 1, 2 or 3 equals a whole run bit for bit.", resumed},
      {kCheckpoint, "values",
       "Losses and weights of a run differ from one without it by at most the tolerance.",
       checkpoint_values, "", 0},
      {kCheckpoint, "layout_fsdp", "The same holds over 2 ranks of FSDP.", checkpoint_fsdp, "", 0},
      {kCheckpoint, "layout_tensor", "The same holds over 2 ranks of tensor parallelism.",
       checkpoint_tensor, "", 0},
      {kCheckpoint, "layout_pipeline", "The same holds over 2 ranks of a pipeline.",
       checkpoint_pipeline, "", 0},
      {kCheckpoint, "saves_memory",
       "A forward keeps at most the tolerance of the bytes that one without it keeps for the "
       "backward.",
       saves_memory, "", 0.95},
      {kBackend, "acts", "model.print_after_conversion names the backend as the owner of a kernel.",
       backend_acts},
      {kBackend, "values", "A float32 run gives the losses of a run without the backend.",
       backend_values, "", 1e-4},
      {kBackend, "exact_values",
       "A float64 run gives the losses and weights of a run without the backend.", backend_exact,
       "", 1e-9},
      {kBackend, "shapes",
       "Validation on rows of other numbers and lengths gives the losses of a run without it.",
       backend_shapes, "", 1e-4},
      {kBackend, "layout_fsdp", "A float32 run over 2 ranks of FSDP gives the losses of one rank.",
       over_fsdp, "", 1e-4},
      {kBackend, "layout_tensor",
       "A float32 run over 2 ranks of tensor parallelism gives the losses of one rank.",
       over_tensor, "", 1e-4},
      {kBackend, "layout_pipeline",
       "A float32 run over 2 ranks of a pipeline gives the losses of one rank.", over_pipeline, "",
       1e-4},
      {kBackend, "recomputed",
       "A run that recomputes all blocks equals one that keeps their activations bit for bit.",
       recomputed},
      {kBackend, "resume", "A run that resumes from step 1, 2 or 3 equals a whole run bit for bit.",
       resumed},
  };
  for (const char* kind : {kConverter, kCheckpoint, kBackend, "parallelism"}) {
    std::vector<Test> rows = transform_ability_tests(kind);
    std::move(rows.begin(), rows.end(), std::back_inserter(tests));
  }
  return tests;
}

}  // namespace titan::conformance
