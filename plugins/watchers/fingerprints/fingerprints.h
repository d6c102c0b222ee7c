// Hashes by which two runs can be compared whatever their layouts: of every weight at the start and
// of the tokens of every step. [debug] fingerprints.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/value.h>

namespace titan::core {

/// Writes fingerprints.jsonl into the run's folder, on rank 0. Collective: every rank makes one and
/// calls the same.
class Fingerprints {
 public:
  /// `goes_on`: a resumed run adds to what the file holds. Throws an io Error when the file cannot
  /// be made.
  Fingerprints(const std::string& folder, bool goes_on, const dist::Mesh& mesh, c10::Device device);

  /// One line per parameter: XXH3 of the bytes of the whole tensor, row-major, put together from
  /// all ranks' shards. Needs memory for one whole tensor at a time.
  void record_weights(ModelPart& part);
  /// One line: the hashes of all rows of the step's global batch (tokens and labels), added up.
  /// `first_row`: of this rank's rows in the global batch.
  void record_tokens(int64_t step, const StepBatches& batches, int64_t first_row);

 private:
  void write(const Value& line);

  const dist::Mesh& mesh_;
  c10::Device device_;
  std::ofstream out_;  // of rank 0
};

/// Records the tokens of every step, once however often it is run. A member of a step.
class TokenFingerprints final : public StepMember {
 public:
  /// `fingerprints` outlives this. `first_row`: of this rank's rows in the global batch.
  TokenFingerprints(Fingerprints& fingerprints, int64_t first_row)
      : fingerprints_(fingerprints), first_row_(first_row) {}
  void begin(Step& step) override {
    if (step.attempt == 1) fingerprints_.record_tokens(step.number, step.batches, first_row_);
  }

 private:
  Fingerprints& fingerprints_;
  int64_t first_row_;
};

}  // namespace titan::core
