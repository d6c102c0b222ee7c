// The named parts that a loss gives beside its sum, added up over a step. Used by the head, which
// hands them over, and by metrics and validation, which log them.
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

/// A reducer among those of the step, so that it forgets a run of the step that is thrown away.
/// Without names it does nothing. Thread: trainer thread, but `take`, which the head calls.
class LossParts final : public GradientReducer {
 public:
  explicit LossParts(std::vector<std::string> names = {}, LossTerms terms = LossTerms())
      : names_(std::move(names)), terms_(std::move(terms)) {}

  const std::vector<std::string>& names() const { return names_; }
  /// What the loss and its parts are divided by.
  const LossTerms& terms() const { return terms_; }
  /// Of one chunk of tokens, or of the sequences of a microbatch: a sum for each name. Not while a
  /// layer is computed again in a backward.
  void take(const std::vector<at::Tensor>& parts);

  /// Forgets what was taken.
  void begin_step() override { sums_.reset(); }
  void start_microbatch(bool) override {}
  void finish_gradients() override {}

  /// Sums since begin_step over the tokens of all ranks, by name. Collective over the mesh, where
  /// there are names.
  std::map<std::string, double> sums(const dist::Mesh& mesh, c10::Device device) const;
  /// The same over `num_terms`, under tags that outlive the run: `prefix` + name. The prefix is
  /// one of "loss_metrics/" and "validation_metrics/".
  std::vector<Scalar> scalars(const std::string& prefix, const std::map<std::string, double>& sums,
                              int64_t num_terms);

 private:
  std::vector<std::string> names_;
  LossTerms terms_;
  at::Tensor sums_;  // double (names); undefined where no head has run on this rank
  std::map<std::string, std::string> tags_;
};

}  // namespace titan::core
