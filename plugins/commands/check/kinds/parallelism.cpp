// Tests of parallelisms: the ladder of layouts, alone and with Titan's own.
#include <algorithm>

#include <titan/files/file.h>

#include "kit/layouts.h"

namespace titan::conformance::parallelism_kind {
namespace {

/// The job on one rank, without any parallelism.
JobRun one_rank(TestContext& test) {
  return plain_job(test, "one")
      .without("parallelism")
      .exact()
      .saves()
      .set("debug.fingerprints", true)
      .run();
}

Job own_layout(TestContext& test, const std::string& name) {
  return job_with(test, name).exact().saves().set("debug.fingerprints", true);
}

void acts(TestContext& test) {
  const Subject& subject = test.subject();
  if (!subject.abilities.empty() || subject.component->axes) return;
  const JobRun with = job_with(test, "with").run();
  Job job = plain_job(test, "plain").without("parallelism");
  const JobRun plain = job.ranks(subject.set.ranks)
                           .set("parallelism.data_parallel_shard_degree", subject.set.ranks)
                           .run();
  const auto output = [](const JobRun& run) {
    const std::string text = run.program().output + run.program().errors;
    return std::count(text.begin(), text.end(), '\n');
  };
  const char* kSent = "comm_metrics/sent_per_step(MiB)";
  test.expect(output(with) != output(plain) || with.series(kSent) != plain.series(kSent) ||
                  with.losses() != plain.losses(),
              "a run with it sends the bytes, has the losses and prints the lines of a run without "
              "it, and it adds no axis and implements no optional interface");
}

void alone(TestContext& test) {
  const JobRun one = one_rank(test);
  measure_runs(test, own_layout(test, "own").run(), one);
}

void same_start(TestContext& test) {
  const auto hashes = [](const JobRun& run) {
    return read_text(run.folder() / "fingerprints.jsonl");
  };
  const JobRun one = one_rank(test), own = own_layout(test, "own").run();
  test.expect(hashes(one) == hashes(own),
              "the initial weights or the tokens of a step differ from those of one rank");
}

/// With Titan's own parallelism on a further axis.
void combined(TestContext& test, const Axis& axis) {
  const Subject& subject = test.subject();
  if (subject.set.job.contains(axis.degree))
    throw NotApplicable{std::string("its own layout is ") + axis.name};
  Job job = own_layout(test, "both");
  job.set("training.global_batch_size", 8);
  const std::string own_degree = subject.set.job.empty() ? kFsdp.degree : "";
  if (own_degree == axis.degree) throw NotApplicable{"the test 'alone' runs it with FSDP"};
  const JobRun both = with_axis(job, axis, subject.set.ranks).run_unless_refused(axis.name);
  const JobRun one = plain_job(test, "one")
                         .without("parallelism")
                         .exact()
                         .saves()
                         .set("training.global_batch_size", 8)
                         .run();
  measure_runs(test, both, one);
}

void with_fsdp(TestContext& test) {
  combined(test, kFsdp);
}
void with_tensor(TestContext& test) {
  combined(test, kTensor);
}
void with_pipeline(TestContext& test) {
  combined(test, kPipeline);
}
void with_context(TestContext& test) {
  combined(test, kContext);
}

void accumulation(TestContext& test) {
  Job job = own_layout(test, "whole").set("training.global_batch_size", 8);
  job.set("training.local_batch_size", 4);
  const JobRun whole = job.run();
  measure_runs(test, job.named("parts").set("training.local_batch_size", 2).run(), whole);
}

void recomputed(TestContext& test) {
  Job job = own_layout(test, "kept");
  const JobRun kept = job.run();
  expect_same_bits(test, job.named("recomputed").set("activation_checkpoint.mode", "full").run(),
                   kept, "recomputed and kept activations");
}

void resumed(TestContext& test) {
  expect_resumes(test, job_with(test, "through"));
}

void to_one_rank(TestContext& test) {
  Job own = own_layout(test, "own").set("checkpoint.interval", 2);
  const JobRun through = own.run();
  // one rank continues in the same folder, from step 2
  std::filesystem::remove_all(through.folder() / "checkpoint/step-4");
  Job alone = plain_job(test, "own").without("parallelism").exact().saves();
  const JobRun one = one_rank(test);
  const std::vector<double> expected = one.losses();
  std::vector<double> losses = alone.set("checkpoint.interval", 2).run().losses();
  test.expect(losses.size() >= 2, "the resumed run logged no step");
  losses = {losses[losses.size() - 2], losses.back()};
  test.measure("difference of the losses of steps 3 and 4",
               difference(losses, {expected[2], expected[3]}));
}

}  // namespace
}  // namespace titan::conformance::parallelism_kind

namespace titan::conformance {

std::vector<Test> parallelism_tests() {
  using namespace parallelism_kind;
  constexpr const char* kKind = "parallelism";
  return {
      {kKind, "acts",
       "It adds an axis, implements an optional interface, or changes what a run sends, prints or "
       "computes.",
       acts},
      {kKind, "same_start",
       "Initial weights and the tokens of each step are those of one rank, bit for bit.",
       same_start},
      {kKind, "alone",
       "A float64 run under its own layout gives the losses and weights of one rank.", alone, "",
       1e-9},
      {kKind, "with_fsdp",
       "The same holds with 2 ranks of FSDP on a further axis, unless it refuses them.", with_fsdp,
       "", 1e-9},
      {kKind, "with_tensor",
       "The same holds with 2 ranks of tensor parallelism, unless it refuses them.", with_tensor,
       "", 1e-9},
      {kKind, "with_pipeline", "The same holds with 2 ranks of a pipeline, unless it refuses them.",
       with_pipeline, "", 1e-9},
      {kKind, "with_context",
       "The same holds with 2 ranks of context parallelism, unless it refuses them.", with_context,
       "", 1e-9},
      {kKind, "accumulation",
       "A float64 run with several microbatches per step gives the losses and weights of one.",
       accumulation, "", 1e-9},
      {kKind, "recomputed",
       "A run that recomputes all blocks equals one that keeps their activations bit for bit.",
       recomputed},
      {kKind, "resume", "A run that resumes from step 1, 2 or 3 equals a whole run bit for bit.",
       resumed},
      {kKind, "to_one_rank",
       "A checkpoint that it saved continues on one rank with the losses of one rank.", to_one_rank,
       "", 1e-9},
  };
}

}  // namespace titan::conformance
