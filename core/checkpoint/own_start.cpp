#include "core/checkpoint/own_start.h"

#include <algorithm>
#include <optional>
#include <string>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include "core/checkpoint/folder_turn.h"

namespace titan::core {
namespace {

using namespace std::chrono_literals;

using OwnKind = OwnStart::Kind;

std::string listed(const std::vector<CheckpointStep>& steps) {
  std::string text;
  for (const CheckpointStep& step : steps)
    text += (text.empty() ? "" : ", ") + std::to_string(step.step) +
            (step.marker == Marker::none ? " (incomplete)" : "");
  return text.empty() ? "none" : text;
}

Lineage new_job(const CheckpointSection& section) {
  return {.job = new_job_id(), .start = start_of(section), .time = wall_seconds()};
}

/// The branch that begins with `step`, whose own lineage is `from`.
Lineage next_branch(const Lineage& newest, const Lineage& from, int64_t step,
                    const CheckpointSection& section) {
  Lineage lineage = new_job(section);
  if (newest.is_known()) lineage.job = newest.job;
  lineage.branch = newest.branch + 1;
  lineage.ancestors = from.ancestors;
  lineage.parent = Lineage::Point{lineage.job, from.branch, step};
  lineage.ancestors.push_back(*lineage.parent);
  return lineage;
}

/// Without load_step: the newest step of `line` that a run can continue from.
OwnStart newest_of(const std::vector<CheckpointStep>& line, const JobConfig& config) {
  std::optional<CheckpointStep> weights;  // the newest that holds no more than weights
  for (auto step = line.rbegin(); step != line.rend(); ++step) {
    if (step->marker == Marker::none) {
      log::warn("the checkpoint in '" + step->path.string() +
                "' is incomplete: it has no manifest.json; skipped");
      continue;
    }
    refuse_foreign(*step);
    if (step->marker == Marker::manifest &&
        read_checkpoint_manifest(step->path).contents == Contents::training) {
      if (weights && weights->step >= config.training.steps) return {OwnKind::done, weights->path};
      if (weights)
        log::warn("'" + weights->path.string() + "' holds weights only; the run continues from '" +
                  step->path.string() + "'");
      return {OwnKind::checkpoint, step->path};
    }
    if (!weights) weights = *step;
  }
  if (!weights) return {};
  if (weights->step >= config.training.steps && weights->step > 0)
    return {OwnKind::done, weights->path};
  TITAN_CHECK(weights->step == 0 && weights->marker == Marker::manifest, config,
              "checkpoint.folder: '", weights->path.string(),
              "' holds weights only, a run cannot continue from it; use it as "
              "checkpoint.initial_load_path of a run with another job.dump_folder");
  return {OwnKind::checkpoint, weights->path};
}

/// The step that load_step names, of any branch.
OwnStart at_load_step(const std::vector<CheckpointStep>& steps, const CheckpointSection& section,
                      const std::filesystem::path& folder) {
  const CheckpointStep step = asked_step(steps, section.load_step, folder);
  refuse_foreign(step);
  TITAN_CHECK(
      step.marker == Marker::manifest &&
          (step.step == 0 || read_checkpoint_manifest(step.path).contents == Contents::training),
      config, "checkpoint.load_step = ", step.step, ": '", step.path.string(),
      "' holds weights only, a run cannot continue from it");
  return {OwnKind::checkpoint, step.path};
}

/// Logs that a restart does not apply the keys that began its branch.
void tell_applied(const CheckpointSection& section, const Lineage& branch, const OwnStart& own) {
  const std::string continues =
      " was applied when branch " + std::to_string(branch.branch) +
      " of this job began and is not applied again: the run continues from '" +
      own.folder.string() + "'";
  if (section.load_step >= 0)
    log::info("checkpoint.load_step = " + std::to_string(section.load_step) + continues +
              "; to begin at step " + std::to_string(section.load_step) +
              " once more, move the newer steps away");
  else if (!section.exclude_from_loading.empty())
    log::info("checkpoint.exclude_from_loading" + continues);
  if (!section.initial_load_path) return;
  if (*section.initial_load_path == branch.start.initial_load_path)
    log::info("checkpoint.initial_load_path" + continues);
  else
    log::warn("checkpoint.initial_load_path is ignored: the run continues from '" +
              own.folder.string() + "'");
}

void warn_of_others(const std::vector<CheckpointStep>& others, const Lineage& lineage) {
  if (others.empty()) return;
  const bool is_one = others.size() == 1;
  log::warn("'" + others.back().path.string() + "'" +
            (is_one ? std::string(" belongs")
                    : " and " + std::to_string(others.size() - 1) + " more (steps " +
                          listed(others) + ") belong") +
            " to an earlier branch of this job; this start saves as branch " +
            std::to_string(lineage.branch) + ". It neither continues from " +
            (is_one ? "it" : "them") + " nor counts " + (is_one ? "it" : "them") +
            " for checkpoint.keep_latest_k; a save of the same step replaces " +
            (is_one ? "it" : "one") + ". Remove what you no longer need");
}

std::vector<CheckpointStep> all_steps(const Branches& branches) {
  std::vector<CheckpointStep> steps;
  for (const BranchStep& step : branches.steps()) steps.push_back(step.step);
  return steps;
}

/// Which branch a start from the complete step in `folder` continues or begins.
Lineage lineage_from(const Branches& branches, const std::filesystem::path& folder, bool begins,
                     const CheckpointSection& section) {
  const auto from = std::find_if(branches.steps().begin(), branches.steps().end(),
                                 [&](const BranchStep& step) { return step.step.path == folder; });
  TITAN_ASSERT(from != branches.steps().end(), "a start from a step that does not exist");
  if (begins) return next_branch(branches.newest(), from->lineage, from->step.step, section);
  if (branches.newest().is_known()) return branches.newest();
  return {.job = new_job_id()};  // saved before lineages were recorded
}

}  // namespace

BranchStart start_of(const CheckpointSection& section) {
  return {section.load_step, section.exclude_from_loading, section.initial_load_path.value_or("")};
}

CheckpointStep asked_step(const std::vector<CheckpointStep>& steps, int64_t wanted,
                          const std::filesystem::path& folder) {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const CheckpointStep& step) { return step.step == wanted; });
  TITAN_CHECK(found != steps.end(), config, "checkpoint.load_step = ", wanted, " is not in '",
              folder.string(), "'; there are: ", listed(steps));
  TITAN_CHECK(found->marker != Marker::none, config, "checkpoint.load_step = ", wanted,
              ": the checkpoint in '", found->path.string(),
              "' is incomplete, it has no manifest.json; there are: ", listed(steps));
  return *found;
}

void refuse_foreign(const CheckpointStep& step) {
  TITAN_CHECK(step.marker != Marker::dcp, data, "'", step.path.string(),
              "' is a checkpoint in torch's pickled format (.metadata, *.distcp), which cannot be "
              "read here; export it to safetensors with the program that wrote it and use titan "
              "convert from-torchtitan-names");
}

std::filesystem::path checkpoint_folder(const JobConfig& config) {
  return std::filesystem::path(config.job.dump_folder) / config.checkpoint.folder;
}

OwnStart find_own_start(const JobConfig& config, bool has_initial) {
  const CheckpointSection& section = config.checkpoint;
  const std::filesystem::path folder = checkpoint_folder(config);
  // not at once: a process that was killed may still be closing its files
  FolderTurn turn;
  if (!section.load_only && turn.begin(folder, 1s)) {  // otherwise another replica group saves
    put_back_asides(folder);
    remove_export_folders(folder);
    turn.end();
  }
  const Branches branches(folder);
  for (const std::string& problem : branches.problems()) log::warn(problem);
  const Lineage newest = section.load_only ? Lineage() : branches.newest();
  const bool begins = begins_branch(start_of(section), newest.start);
  // a first save that was cut off left no step to go back to
  const bool has_step =
      std::any_of(branches.steps().begin(), branches.steps().end(),
                  [](const BranchStep& step) { return step.step.marker != Marker::none; });
  const bool is_asked = begins && section.load_step >= 0 && (has_step || !has_initial);
  OwnStart own = is_asked ? at_load_step(all_steps(branches), section, folder)
                          : newest_of(branches.line_of(newest), config);
  own.is_restart = !begins;
  if (own.kind == OwnKind::fresh) {
    own.lineage = new_job(section);
    return own;
  }
  own.lineage = lineage_from(branches, own.folder, begins, section);
  if (own.is_restart) {
    tell_applied(section, own.lineage, own);
  } else if (section.initial_load_path) {
    log::warn("checkpoint.initial_load_path is ignored: the run continues from '" +
              own.folder.string() + "'");
  }
  if (!section.load_only) warn_of_others(branches.others(own.lineage), own.lineage);
  return own;
}

}  // namespace titan::core
