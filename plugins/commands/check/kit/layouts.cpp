#include "layouts.h"

#include <algorithm>

#include <titan/checkpoints/safetensors.h>
#include <titan/files/file.h>
#include <titan/transform.h>

#include "toy.h"

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

/// Tokens with their labels, in any order.
std::vector<std::pair<int64_t, int64_t>> pairs_of(const Batch& batch) {
  const at::Tensor tokens = batch.tokens.reshape({-1}), labels = batch.labels.reshape({-1});
  if (tokens.numel() != labels.numel()) throw Broken("split() returns more tokens than labels");
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < tokens.numel(); ++i)
    pairs.emplace_back(tokens[i].item<int64_t>(), labels[i].item<int64_t>());
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

/// The fingerprints of a run are taken before the split: on one rank, split() keeps every token.
void expect_same_tokens(TestContext& test) {
  const OneRank rank;
  ModelPart part(toy_layers());
  const auto transform = test.make<ModelTransform>(rank.context());
  transform->apply(part, rank.context());
  const Batch batch = drawn_batch(test.seed(), 2, 16, kToyVocab);
  const Batch split = dynamic_cast<BatchSplitter&>(*transform).split(batch);
  test.expect(pairs_of(split) == pairs_of(batch),
              "on one rank, split() returns other tokens or labels than it gets");
}

void splits_batches(TestContext& test) {
  const JobRun with = job_with(test, "with").set("debug.fingerprints", true).run();
  const JobRun plain =
      plain_job(test, "plain").without("parallelism").set("debug.fingerprints", true).run();
  const auto tokens = [](const JobRun& run) {
    return read_text(run.folder() / "fingerprints.jsonl");
  };
  test.expect(tokens(with) == tokens(plain), "the run trains on other tokens than one without it");
  expect_same_tokens(test);
}

/// Ranks of the tested layout that read other rows.
int64_t num_data_ranks(const TestContext& test) {
  const Subject& subject = test.subject();
  if (subject.kind != "parallelism") return 1;
  const auto& keys = subject.set.job;
  const bool has_layout = std::any_of(keys.begin(), keys.end(), [](const auto& entry) {
    return entry.first.starts_with("parallelism.");
  });
  if (!has_layout) return subject.set.ranks;
  return std::stoll(test.key("parallelism.data_parallel_shard_degree", "1")) *
         std::stoll(test.key("parallelism.data_parallel_replicate_degree", "1"));
}

/// Validates on `num_rows` rows per rank.
Job validated(Job job, int64_t num_rows) {
  return job.set("validation.enable", true)
      .set("validation.local_batch_size", num_rows)
      .set("validation.freq", 2)
      .set("validation.steps", 2)
      .set("validation.dataset", "synthetic")
      .set("validation.seq_len", 32);
}

void executes(TestContext& test) {
  const JobRun with = validated(job_with(test, "with").exact(), 4).run();
  const std::vector<double> losses = with.series("validation_metrics/loss");
  const JobRun plain =
      validated(plain_job(test, "plain").without("parallelism").exact(), 4 * num_data_ranks(test))
          .run();
  test.expect(!losses.empty(), "a run with it logs no validation loss");
  test.measure("difference of validation losses",
               difference(losses, plain.series("validation_metrics/loss")));
}

void wraps(TestContext& test) {
  Job job = job_with(test, "parts").set("training.global_batch_size", 8);
  const JobRun run = job.set("training.local_batch_size", 1).run();
  test.expect(run.losses().size() == 4, "a run of 4 steps with several microbatches each logged ",
              run.losses().size(), " losses");
  measure_runs(test, run, job.named("whole").set("training.local_batch_size", 4).run(), false);
}

/// Over 2 ranks, each of which has a part of the states; the layout of a parallelism has its own.
void resumes(TestContext& test) {
  Job job = job_with(test, "through");
  expect_resumes(test, test.subject().kind == "parallelism" ? job : with_axis(job, kFsdp));
}

void reduces(TestContext& test) {
  Job job = job_with(test, "whole").exact().saves();
  const JobRun whole =
      job.set("training.global_batch_size", 8).set("training.local_batch_size", 4).run();
  measure_runs(test, job.named("parts").set("training.local_batch_size", 1).run(), whole);
}

void exports(TestContext& test) {
  const auto names = [&](Job job) {
    const JobRun run = job.saves()
                           .set("checkpoint.last_save_model_only", true)
                           .set("checkpoint.last_save_in_hf", true)
                           .run();
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(run.folder() / "checkpoint"))
      if (entry.path().extension() == ".safetensors")
        for (const TensorEntry& tensor : read_header(entry.path()).tensors)
          found.push_back(tensor.name);
    std::sort(found.begin(), found.end());
    return found;
  };
  const std::vector<std::string> with = names(job_with(test, "with")),
                                 plain = names(plain_job(test, "plain"));
  test.expect(!with.empty() && with == plain,
              "an export holds other tensors than an export of the model without it");
}

}  // namespace

Job with_axis(Job job, const Axis& axis, int ranks) {
  if (std::string_view(axis.degree) == kPipeline.degree)
    job.set("parallelism.pipeline_parallel_schedule", "1F1B");
  return job.ranks(2 * ranks).set(axis.degree, 2);
}

void expect_resumes(const TestContext& test, Job job) {
  job.saves().set("checkpoint.interval", 1);
  const JobRun through = job.run();
  for (const int step : {1, 2, 3}) {
    const Job again = job.named("again" + std::to_string(step));
    fs::copy(through.folder(), again.folder(), fs::copy_options::recursive);
    for (int later = step + 1; later <= 4; ++later)
      fs::remove_all(again.folder() / ("checkpoint/step-" + std::to_string(later)));
    expect_same_bits(test, again.run(), through,
                     "after a resume from step " + std::to_string(step));
  }
}

std::vector<Test> transform_ability_tests(const char* kind) {
  // what a converter computes is close to the layers that it replaces, not equal
  const double executes_limit = std::string_view(kind) == "converter" ? 0.05 : 1e-9;
  return {
      {kind, "splits_batches",
       "A run with a transform that splits batches trains on the tokens of a run without it.",
       splits_batches, "BatchSplitter"},
      {kind, "executes", "A float64 run with an executor gives the validation losses of one rank.",
       executes, "StepExecutor", executes_limit},
      {kind, "wraps",
       "A run with a wrapper of the executor logs each step of several microbatches once, with the "
       "losses of fewer.",
       wraps, "ExecutorWrapper", 1e-2},
      {kind, "step_member",
       "A run of several ranks with a member of steps that resumes from step 1, 2 or 3 equals a "
       "whole run bit for bit.",
       resumes, "StepMember"},
      {kind, "reduces",
       "With a reducer of gradients, several microbatches per step give the losses and weights of "
       "one.",
       reduces, "GradientReducer", 1e-9},
      {kind, "after_optimizer_step",
       "A run of several ranks with work after each step that resumes from step 1, 2 or 3 equals a "
       "whole run bit for bit.",
       resumes, "AfterOptimizerStep"},
      {kind, "transform_state",
       "A run of several ranks with a transform that has states resumes from step 1, 2 or 3 and "
       "equals a whole run bit for bit.",
       resumes, "StatefulOptimizer"},
      {kind, "export_transform",
       "An export holds the tensors, by name, of an export of the model without the plugin.",
       exports, "ExportTransform"},
  };
}

}  // namespace titan::conformance
