// Sums the named parts that a loss reports in addition to its sum, over a step. The head adds to
// it; metrics and validation log it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/mesh.h>
#include <titan/logger.h>
#include <titan/transform.h>

#include "core/train/loss/loss_terms.h"

namespace titan::core {

/// One of the step's reducers, so that it resets when the step is repeated. Does nothing without
/// names. Thread: trainer thread, except `take`, which the head calls.
class LossParts final : public GradientReducer {
 public:
  explicit LossParts(std::vector<std::string> names = {}, LossTerms terms = LossTerms())
      : names_(std::move(names)), terms_(std::move(terms)) {}

  const std::vector<std::string>& names() const { return names_; }
  /// The divisors of the loss and its parts.
  const LossTerms& terms() const { return terms_; }
  /// Adds a sum for each name, of one chunk of tokens or of the sequences of a microbatch. Ignored
  /// while a backward recomputes a layer.
  void take(const std::vector<at::Tensor>& parts);

  /// Drops the sums.
  void begin_step() override { sums_.reset(); }
  void start_microbatch(bool) override {}
  void finish_gradients() override {}

  /// Sums since begin_step over the tokens of all ranks, by name. Collective over the mesh, if
  /// there are names.
  std::map<std::string, double> sums(const dist::Mesh& mesh, c10::Device device) const;
  /// The sums divided by `num_terms`, under tags that outlive the run: `prefix` + name. The prefix
  /// is "loss_metrics/" or "validation_metrics/".
  std::vector<Scalar> scalars(const std::string& prefix, const std::map<std::string, double>& sums,
                              int64_t num_terms);

 private:
  std::vector<std::string> names_;
  LossTerms terms_;
  at::Tensor sums_;  // double (names); undefined if no head has run on this rank
  std::map<std::string, std::string> tags_;
};

}  // namespace titan::core
