// Rules between several keys, or between a key and the world size. A rule is checked only when
// every key that it reads is valid by itself, so that one mistake is reported once. Used by
// resolve.cpp.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// Inputs of every rule. The references are valid during the check.
struct RuleContext {
  const JobConfig& config;
  const GivenValues& given;
  Diagnostics& diagnostics;
  bool looks_for_files = true;  ///< the files that the job reads must exist

  bool are_sound(std::initializer_list<std::string_view> keys) const;
  /// Reports at the key's value, or without a place when the value is a default.
  void error(std::string_view key, std::string message, std::string hint = "") const;
};

/// Computes the layout: replaces -1, computes the batch per step and the accumulation rounds.
/// Reports degrees whose product is not the world size and batches that do not divide; the layout
/// then holds the values that could be computed.
Layout plan_layout(const RuleContext& context);

/// Sets layout.grid: the degrees as axes, and the axes that config.axis_requests add, borrow and
/// derive. Reports invalid requests at the option of the plugin. `config.places` is set.
void make_grid(JobConfig& config, Diagnostics& diagnostics);

/// The rules that depend on the layout: sequences, experts and validation.
void check_layout(const RuleContext& context, const Layout& layout);

/// All other rules, check_layout's among them. `layout` is plan_layout()'s.
void check_rules(const RuleContext& context, const Layout& layout);

/// The rules of stages and microbatches (pipeline_rules.cpp). Returns the actions of every pipeline
/// rank in a round, or null when the schedule cannot run, which is reported.
std::shared_ptr<const PipelinePlan> plan_pipeline(const RuleContext& context,
                                                  const PipelineSchedule& schedule);

}  // namespace titan::core
