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
  /// The sum of the hashes of all rows of the step's global batch (tokens and labels), of all
  /// replica groups. Undefined if a replica group was lost: the step does not count then.
  std::string hash_of_tokens(const StepBatches& batches) const;
  /// One line.
  void record_tokens(int64_t step, const std::string& hash);

 private:
  void write(const Value& line);

  const dist::Mesh& mesh_;
  c10::Device device_;
  std::ofstream out_;  // only on rank 0
};

/// Records the weights at the start and the tokens of every step that counts, once even if it is
/// repeated or begun anew.
class FingerprintWatcher final : public Watcher, public StepMember {
 public:
  explicit FingerprintWatcher(WatcherContext context) : context_(std::move(context)) {}
  std::vector<StepMember*> members() override { return {this}; }
  bool looks_into_layers() const override { return false; }
  bool reads_numbers() const override { return false; }
  void start(const WatcherStart& start) override;

  bool undoes_steps() const override { return false; }
  void begin(Step& step) override;
  void commit(const Step& step) override { fingerprints_->record_tokens(step.number, tokens_); }
  void skip(const Step& step) override { fingerprints_->record_tokens(step.number, tokens_); }

 private:
  WatcherContext context_;
  std::optional<Fingerprints> fingerprints_;
  std::string tokens_;  // of the step in progress
};

}  // namespace titan::fingerprints
