// Norms and histograms of weights and gradients, by layer or by parameter: [metrics] norms,
// histograms.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/named_totals.h>
#include <titan/step.h>
#include <titan/watcher.h>

namespace titan::parameter_statistics {

enum class NormsOf { none, layers, parameters };

/// [watcher.parameter_statistics]; all of it follows from [metrics].
struct Options {
  int64_t log_freq = 10;  ///< steps; step 1 is logged too
  NormsOf norms = NormsOf::none;
  std::vector<std::string> histograms;  ///< patterns of parameters' names
  int64_t histogram_freq = 100;         ///< steps
};

/// Comes when gradients are complete and before they are clipped. An element that several ranks
/// hold is counted by the first of them, so that the numbers are those of one rank alone.
/// Costs nothing in steps that are not due.
class ParameterStatistics final : public Watcher, public StepMember {
 public:
  ParameterStatistics(const Options& options, WatcherContext context);

  /// config Error: a pattern fits no parameter of the `whole` model.
  void match(ModelPart& whole) override;
  void attach(ModelPart& part) override { part_ = &part; }
  std::vector<StepMember*> late_members() override { return {this}; }
  bool looks_into_layers() const override { return false; }

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

  bool is_logged(int64_t step) const { return step == 1 || step % options_.log_freq == 0; }

  Options options_;
  WatcherContext context_;
  ModelPart* part_ = nullptr;
  std::map<std::string, std::string> tags_;  // of scalars: they outlive the run
  NamedTotals bins_;                         // of the step under way: "weights/name\x01bin"
};

}  // namespace titan::parameter_statistics
