// Norms and histograms of weights and gradients, by layer or by parameter: [metrics] norms,
// histograms. A member of a step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>

#include "core/config/job_sections.h"
#include "core/train/logger_set.h"
#include "core/train/named_totals.h"

namespace titan::core {

/// Comes when gradients are complete and before they are clipped. An element that several ranks
/// hold is counted by the first of them, so that the numbers are those of one rank alone.
/// References outlive this. Costs nothing in steps that are not due.
class ParameterStatistics final : public StepMember {
 public:
  ParameterStatistics(const MetricsSection& section, ModelPart& part, const dist::Mesh& mesh,
                      c10::Device device, LoggerSet& loggers);

  /// Whether `section` asks for any.
  static bool are_asked_for(const MetricsSection& section);
  /// config Error: a pattern fits no parameter of the `whole` model.
  static void check(const MetricsSection& section, const ModelPart& whole);

  bool undoes_steps() const override { return false; }
  /// Norms go into the step's scalars: "grad_norm/layers.0", "param_norm/layers.0".
  void reduced(Step& step) override;
  /// Histograms go to the loggers: "gradients/layers.0.attention.wq.weight", "weights/...". The
  /// edges are 0 and powers of 2 on either side.
  void commit(const Step& step) override;

 private:
  std::string group_of(const std::string& parameter) const;
  void add_norms(const nn::Parameter& parameter, double gradient_scale, NamedTotals& totals) const;
  void add_histograms(const nn::Parameter& parameter, double gradient_scale,
                      NamedTotals& totals) const;

  const MetricsSection& section_;
  ModelPart& part_;
  const dist::Mesh& mesh_;
  c10::Device device_;
  LoggerSet& loggers_;
  std::map<std::string, std::string> tags_;  // of scalars: they outlive the run
  NamedTotals bins_;                         // of the step under way: "weights/name\x01bin"
};

}  // namespace titan::core
