// Norms and histograms of weights and gradients, per layer or per parameter: [metrics] norms,
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

/// Options of the watcher; the keys of [metrics] set them.
struct Options {
  int64_t log_freq = 10;  ///< steps; step 1 is logged too
  NormsOf norms = NormsOf::none;
  std::vector<std::string> histograms;  ///< patterns of parameter names
  int64_t histogram_freq = 100;         ///< steps
};

/// Runs when gradients are complete, before they are clipped. Of the ranks that hold the same
/// element the first one counts it, so that the numbers equal those of a single rank. Steps that
/// are not due cost nothing.
class ParameterStatistics final : public Watcher, public StepMember {
 public:
  ParameterStatistics(const Options& options, WatcherContext context);

  /// config Error: a pattern matches no parameter of the `whole` model.
  void match(ModelPart& whole) override;
  void attach(ModelPart& part) override { part_ = &part; }
  std::vector<StepMember*> late_members() override { return {this}; }
  bool looks_into_layers() const override { return false; }

  bool undoes_steps() const override { return false; }
  /// Norms go into the step's scalars: "grad_norm/layers.0", "param_norm/layers.0".
  void reduced(Step& step) override;
  /// Histograms go to the loggers: "gradients/layers.0.attention.wq.weight", "weights/...". The bin
  /// edges are 0 and positive and negative powers of 2.
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
  std::map<std::string, std::string> tags_;  // of scalars, which refer to them
  NamedTotals bins_;                         // of the current step: "weights/name\x01bin"
};

}  // namespace titan::parameter_statistics
