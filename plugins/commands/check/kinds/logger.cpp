// Tests of loggers.
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <set>

#include <titan/error.h>
#include <titan/logger.h>

#include "kit/jobs.h"

namespace titan::conformance::logger_kind {
namespace {

namespace fs = std::filesystem;

RunInfo run_info(TestContext& test, const fs::path& folder) {
  fs::create_directories(folder);
  RunInfo run;
  run.dump_folder = folder;
  run.description = "conformance";
  run.config = Value::map({{"training", Value::map({{"steps", 3}})},
                           {"job", Value::map({{"dump_folder", folder.string()}})}});
  run.start_time = 1700000000 + static_cast<double>(test.seed() % 1000);
  run.num_steps = 3;
  run.tokens_per_step = 128;
  run.num_parameters = 1000;
  return run;
}

/// start, three logged steps with `more` scalars, finish: what the trainer calls.
void run_through(Logger& logger, const RunInfo& run, const std::vector<Scalar>& more = {}) {
  logger.start(run);
  for (int64_t step = 1; step <= 3; ++step) {
    std::vector<Scalar> scalars = {
        {"loss_metrics/global_avg_loss", 2.5 / static_cast<double>(step)},
        {"grad_norm", 0.5},
        {"lr", 1e-3}};
    scalars.insert(scalars.end(), more.begin(), more.end());
    logger.set_log_time(run.start_time + static_cast<double>(step));
    logger.log(step, scalars);
    if (logger.follows_steps()) logger.step_done({step, static_cast<double>(step)});
  }
  logger.finish(RunOutcome::finished);
}

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

void writes(TestContext& test) {
  if (test.has("TensorObserver"))
    throw NotApplicable{"it logs tensors; the test observes is for such loggers"};
  const JobRun run = job_with(test, "with").run();
  const JobRun plain = plain_job(test, "without").run();
  const bool has_files = bytes_in(run.folder()) != bytes_in(plain.folder()) && [&] {
    for (const auto& entry : fs::recursive_directory_iterator(run.folder()))
      if (entry.is_regular_file() && entry.file_size() > 0 &&
          !fs::exists(plain.folder() / fs::relative(entry.path(), run.folder())))
        return true;
    return false;
  }();
  const bool prints = run.program().output.size() > plain.program().output.size() + 20;
  const bool is_the_plain_one = test.subject().name == "jsonl";  // both runs have it
  test.expect(has_files || prints || is_the_plain_one,
              "a run of 4 steps with it leaves no new file in the folder of the run and prints "
              "nothing more");
}

void observes(TestContext& test) {
  const auto tags = [](const JobRun& run) {
    std::set<std::string> found;
    std::ifstream in(run.folder() / "metrics.jsonl");
    for (std::string line; std::getline(in, line);)
      for (const Value::Member& member : parse_json(line).as_map()) found.insert(member.first);
    return found;
  };
  const std::set<std::string> without = tags(plain_job(test, "without").run());
  std::set<std::string> with = tags(job_with(test, "with").run());
  for (const std::string& tag : without) with.erase(tag);
  test.expect(!with.empty(), "a run of 4 steps with it logs no further number in metrics.jsonl");
}

void any_numbers(TestContext& test) {
  const auto logger = test.make<Logger>({});
  using Limits = std::numeric_limits<double>;
  run_through(*logger, run_info(test, test.place().folder / "run"),
              {{"nan", Limits::quiet_NaN()},
               {"infinite", Limits::infinity()},
               {"minus", -Limits::infinity()},
               {"tiny", Limits::denorm_min()},
               {"largest", Limits::max()},
               {"a \"tag\" with\nodd, characters \xC3\xA9", 1}});
}

void missing_steps(TestContext& test) {
  const RunInfo run = run_info(test, test.place().folder / "run");
  test.make<Logger>({})->finish(RunOutcome::failed);  // a run that fails before start
  const auto no_step = test.make<Logger>({});
  no_step->start(run);
  no_step->finish(RunOutcome::stopped);
  const auto no_scalar = test.make<Logger>({});
  no_scalar->start(run);
  no_scalar->log(1, {});
  no_scalar->log_histograms(1, {});
  no_scalar->finish(RunOutcome::finished);
}

void full_disk(TestContext& test) {
  const auto logger = test.make<Logger>({});
  const RunInfo run = run_info(test, test.place().folder / "run");
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit none{0, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);  // every write to a file fails
  std::string wrong;
  try {
    run_through(*logger, run);
  } catch (const Error&) {  // which the run turns into one warning
    logger->finish(RunOutcome::finished);
  } catch (const std::exception& error) {
    wrong = error.what();
  } catch (...) {
    wrong = "an unknown exception";
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  test.expect(wrong.empty(),
              "where no file can grow it throws something that is no titan::Error: ", wrong);
}

void missing_folder(TestContext& test) {
  const auto logger = test.make<Logger>({});
  RunInfo run = run_info(test, test.place().folder / "run");
  fs::remove_all(run.dump_folder);
  std::ofstream(run.dump_folder) << "a file where the folder was";
  try {
    run_through(*logger, run);
  } catch (const Error& error) {
    test.expect(std::string(error.what()).find(run.dump_folder.string()) != std::string::npos,
                "the error for a folder that is gone does not name it: ", error.what());
  } catch (const std::exception& error) {
    throw Broken(std::string("a folder that is gone makes it throw something that is no "
                             "titan::Error: ") +
                 error.what());
  }
}

void never_blocks(TestContext& test) {
  const auto logger = test.make<Logger>({});
  const RunInfo run = run_info(test, test.place().folder / "run");
  logger->start(run);
  const std::vector<Scalar> scalars = {{"loss_metrics/global_avg_loss", 1.0}, {"grad_norm", 1.0}};
  const auto begin = std::chrono::steady_clock::now();
  constexpr int64_t kCalls = 200;
  for (int64_t step = 1; step <= kCalls; ++step) logger->log(step, scalars);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  logger->finish(RunOutcome::finished);
  test.measure("seconds per call of log", seconds / static_cast<double>(kCalls));
}

void same_results(TestContext& test) {
  const JobRun with = job_with(test, "with").saves().run();
  const JobRun without = plain_job(test, "without").saves().run();
  expect_same_bits(test, with, without, "a run with the logger and one without it");
}

/// A run continues without a logger that throws, and warns.
void expect_kept(TestContext& test, const JobRun& run) {
  for (const std::string& text : {run.program().errors, run.program().output}) {
    const size_t at = text.find("failed and is off from here on");
    test.expect(at == std::string::npos,
                "the run continues without it: ", text.substr(std::min(at, text.size()), 300));
  }
}

void ranks(TestContext& test) {
  const JobRun run = job_with(test, "two").ranks(2).run();
  expect_kept(test, run);
  test.expect(run.losses().size() == 4, "2 ranks logged ", run.losses().size(), " of 4 steps");
}

void resume(TestContext& test) {
  Job job = job_with(test, "run").saves().set("checkpoint.interval", 2);
  job.run();
  fs::remove_all(job.folder() / "checkpoint/step-4");
  const JobRun again = job.run();
  expect_kept(test, again);
  test.expect(again.losses().size() >= 4, "after a resume metrics.jsonl has ",
              again.losses().size(), " of 4 steps");
}

}  // namespace
}  // namespace titan::conformance::logger_kind

namespace titan::conformance {

std::vector<Test> logger_tests() {
  using namespace logger_kind;
  constexpr const char* kKind = "logger";
  return {
      {kKind, "writes", "A run with the logger leaves a file in the folder of the run, or prints.",
       writes},
      {kKind, "observes", "A run with a logger that observes tensors logs more numbers.", observes,
       "TensorObserver"},
      {kKind, "any_numbers",
       "log() takes NaN, infinities, the smallest and largest numbers, and tags with any "
       "characters.",
       any_numbers},
      {kKind, "missing_steps",
       "finish() works without start(), and a run may log no step, no scalar and no histogram.",
       missing_steps},
      {kKind, "full_disk",
       "Where no file can grow the logger throws nothing but titan::Error, and finish() nothing.",
       full_disk},
      {kKind, "missing_folder",
       "Where a file is in place of the folder of the run, the logger throws nothing but a "
       "titan::Error that names it.",
       missing_folder},
      {kKind, "never_blocks", "A call of log() takes at most 0.05 s on average over 200 calls.",
       never_blocks, "", 0.05},
      {kKind, "same_results",
       "A run with the logger gives losses and weights of a run without it, bit for bit.",
       same_results},
      {kKind, "ranks", "A run of 2 ranks with the logger ends well.", ranks},
      {kKind, "resume", "A resumed run with the logger ends well, in the folder of the first.",
       resume},
  };
}

}  // namespace titan::conformance
