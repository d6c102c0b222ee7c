// Rules that tie several keys together, or a key to the world size. Each speaks only when every key
// it reads is sound by itself, so that one mistake is reported once.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// What every rule needs. References live as long as the check.
struct RuleContext {
  const JobConfig& config;
  const GivenValues& given;
  Diagnostics& diagnostics;
  bool looks_for_files = true;  ///< those that the job reads must be here

  bool are_sound(std::initializer_list<std::string_view> keys) const;
  /// At the key's value, or without a place when it is a default.
  void error(std::string_view key, std::string message, std::string hint = "") const;
};

/// Works out the layout: -1 for the world size, the batch per step, the accumulation rounds.
/// Reports degrees that do not make the world size and batches that do not divide; the layout then
/// holds what could be worked out.
Layout plan_layout(const RuleContext& context);

/// Sets layout.grid: the degrees as axes, and what config.axis_requests add, borrow and derive.
/// Reports what they get wrong at the option of the plugin. `config.places` is set.
void make_grid(JobConfig& config, Diagnostics& diagnostics);

/// The rules that a layout decides about: sequences, experts and validation.
void check_layout(const RuleContext& context, const Layout& layout);

/// All other rules, check_layout's among them. `layout` is plan_layout()'s.
void check_rules(const RuleContext& context, const Layout& layout);

/// The part of it that concerns stages and microbatches (pipeline_rules.cpp): what every rank of
/// the pipeline does in a round. Null when it cannot run, which is reported.
std::shared_ptr<const PipelinePlan> plan_pipeline(const RuleContext& context,
                                                  const PipelineSchedule& schedule);

}  // namespace titan::core
