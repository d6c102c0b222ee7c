// Hashes for comparing two runs with different layouts: of every weight at the start and of the
// tokens of every step. [debug] fingerprints.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/value.h>
#include <titan/watcher.h>

namespace titan::fingerprints {

/// Writes fingerprints.jsonl into the run's folder, on rank 0. Collective: every rank constructs
/// one and makes the same calls.
class Fingerprints {
 public:
  /// `goes_on`: a resumed run appends to the file. Throws an io Error when the file cannot be
  /// written.
  Fingerprints(const std::string& folder, bool goes_on, const dist::Mesh& mesh, c10::Device device);

  /// One line per parameter: XXH3 of the bytes of the whole tensor, row-major, gathered from all
  /// ranks' shards. Needs memory for one whole tensor at a time.
  void record_weights(ModelPart& part);
  /// One line: the sum of the hashes of all rows of the step's global batch (tokens and labels).
  /// `first_row`: of this rank's rows in the global batch.
  void record_tokens(int64_t step, const StepBatches& batches, int64_t first_row);

 private:
  void write(const Value& line);

  const dist::Mesh& mesh_;
  c10::Device device_;
  std::ofstream out_;  // only on rank 0
};

/// Records the weights at the start and the tokens of every step, once even if it is repeated.
class FingerprintWatcher final : public Watcher, public StepMember {
 public:
  explicit FingerprintWatcher(WatcherContext context) : context_(std::move(context)) {}
  std::vector<StepMember*> members() override { return {this}; }
  bool looks_into_layers() const override { return false; }
  bool reads_numbers() const override { return false; }
  void start(const WatcherStart& start) override;

  bool undoes_steps() const override { return false; }
  void begin(Step& step) override;

 private:
  WatcherContext context_;
  std::optional<Fingerprints> fingerprints_;
  int64_t first_row_ = 0;
};

}  // namespace titan::fingerprints
