// Tests of watchers.
#include <functional>

#include "kit/jobs.h"

namespace titan::conformance::watcher_kind {
namespace {

namespace fs = std::filesystem;

/// Files of the run, and numbers of its metrics, that the other run does not have.
bool leaves_more(const JobRun& with, const JobRun& without) {
  for (const auto& entry : fs::recursive_directory_iterator(with.folder()))
    if (entry.is_regular_file() && entry.file_size() > 0 &&
        !fs::exists(without.folder() / fs::relative(entry.path(), with.folder())))
      return true;
  const auto metrics = [](const JobRun& run) {
    return fs::file_size(run.folder() / "metrics.jsonl");
  };
  return metrics(with) > metrics(without) + 16 ||
         with.program().errors.size() + with.program().output.size() >
             without.program().errors.size() + without.program().output.size() + 64;
}

void observes(TestContext& test) {
  const JobRun with = job_with(test, "with").run(), without = plain_job(test, "without").run();
  test.expect(leaves_more(with, without),
              "a run of 4 steps with it has no further file, number or message");
}

void compare(TestContext& test, const std::function<void(Job&)>& change) {
  Job with = job_with(test, "with").saves(), without = plain_job(test, "without").saves();
  change(with);
  change(without);
  expect_same_bits(test, with.run(), without.run(), "a run with the watcher and one without it");
}

void same_results(TestContext& test) {
  compare(test, [](Job&) {});
}
void accumulation(TestContext& test) {
  compare(test, [](Job& job) { job.set("training.local_batch_size", 1); });
}
void layout_fsdp(TestContext& test) {
  compare(test, [](Job& job) { job.ranks(2).set("parallelism.data_parallel_shard_degree", 2); });
}
void layout_pipeline(TestContext& test) {
  compare(test, [](Job& job) {
    job.ranks(2).set("parallelism.pipeline_parallel_degree", 2);
    job.set("parallelism.pipeline_parallel_schedule", "1F1B");
  });
}
void recomputed(TestContext& test) {
  compare(test, [](Job& job) { job.set("activation_checkpoint.mode", "full"); });
}

void resume(TestContext& test) {
  Job job = job_with(test, "through").saves().set("checkpoint.interval", 2);
  const JobRun through = job.run();
  Job halves = job.named("halves");
  halves.run();
  fs::remove_all(halves.folder() / "checkpoint/step-4");
  expect_same_bits(test, halves.run(), through, "after a resume from step 2");
}

}  // namespace
}  // namespace titan::conformance::watcher_kind

namespace titan::conformance {

std::vector<Test> watcher_tests() {
  using namespace watcher_kind;
  constexpr const char* kKind = "watcher";
  return {
      {kKind, "observes",
       "A run with the watcher has a further file, number or message that a run without it has "
       "not.",
       observes},
      {kKind, "same_results",
       "Losses, norms and weights are those of a run without the watcher, bit for bit.",
       same_results},
      {kKind, "accumulation", "The same holds with 4 microbatches per step.", accumulation},
      {kKind, "layout_fsdp", "The same holds over 2 ranks of FSDP.", layout_fsdp},
      {kKind, "layout_pipeline", "The same holds over 2 ranks of a pipeline.", layout_pipeline},
      {kKind, "recomputed", "The same holds where blocks are recomputed.", recomputed},
      {kKind, "resume",
       "A run with the watcher that resumes from step 2 equals a whole run bit for bit.", resume},
  };
}

}  // namespace titan::conformance
