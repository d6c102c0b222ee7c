// Decides when a run saves a checkpoint, what it contains and how long it is kept: section
// [checkpoint]. Used by the trainer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <titan/checkpoints/lineage.h>
#include <titan/checkpoints/local_parts.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>
#include <titan/value.h>

#include "core/checkpoint/folder_turn.h"
#include "core/checkpoint/saver.h"
#include "core/checkpoint/train_state.h"
#include "core/config/schema/job_config.h"
#include "core/data/batches/loader.h"

namespace titan::core {

/// The parts of a run that are saved; all outlive the checkpointer.
struct Saved {
  ModelPart& part;
  Optimizer& optimizer;
  const Loader& loader;
  const Model& model;
  const Tokenizer& tokenizer;
  const dist::Mesh& mesh;
  Device& device;
  uint64_t seed = 0;
  std::vector<ExportTransform*> exports;  ///< change the weights of a Hugging Face export
  std::function<Value()> watchers;        ///< their states by name, equal on all ranks
  Lineage lineage;                        ///< goes into every manifest
};

/// Whether [checkpoint] asks for a checkpoint after `step`, apart from the last one.
bool is_save_due(const CheckpointSection& section, int64_t step);
/// The same for a local checkpoint.
bool is_local_save_due(const CheckpointSection& section, int64_t step);

/// Collective: every rank makes one and makes the same calls. Does nothing where [checkpoint]
/// enable is false.
///
/// With async_mode = "disabled" a save that fails ends the run. Otherwise the state is copied to
/// host memory during the forward and backward of the next step, which only read it, and written
/// from there. The training thread waits when the copy is not complete before the optimizer changes
/// the state, and when an earlier save is still being written. A failure is reported at the next
/// step, the next save tries again, and `finish` throws when the last one failed.
class Checkpointer {
 public:
  Checkpointer(const JobConfig& config, const Saved& saved, const Rendezvous& rendezvous);

  /// [in each step, before the optimizer changes anything]
  void before_update();
  /// Whether after_step saves after step `step`.
  bool saves_after(int64_t step) const;
  /// [after each step] Saves when a save is due: at the interval, after the first step if
  /// configured, and after the last. Returns whether it saved.
  bool after_step(const TrainState& state);
  /// Saves everything now, unless this step is saved already, and waits until it is complete. False
  /// where this job does not save.
  bool save_now(const TrainState& state);
  /// Whether the run saves checkpoints, in this job or in another replica group.
  bool is_on() const { return saver_ != nullptr; }
  /// Whether this job saves: of several replica groups one does. Equal on all ranks.
  void set_writes(bool writes) { writes_ = writes; }
  /// Of the job and branch that the checkpoints belong to.
  const Lineage& lineage() const { return saved_.lineage; }
  void set_lineage(Lineage lineage) { saved_.lineage = std::move(lineage); }
  /// Initial weights as step 0.
  void save_seed();
  /// Waits for the save in progress.
  void finish();

 private:
  bool is_local_due(int64_t step) const;
  /// Saves into the folder of that step, or into its subfolder `subfolder`.
  void save(const TrainState& state, Contents contents, bool waits,
            const std::string& subfolder = "");
  void save_local(const TrainState& state);
  void save_last(const TrainState& state);
  void prepare_folder(const std::filesystem::path& folder, const std::string& subfolder,
                      bool waits) const;
  SaveJob make_job(const std::filesystem::path& folder, const TrainState& state, Contents contents,
                   const std::vector<StateTensor>& weights) const;
  std::vector<StateTensor> weights_for_others() const;
  void save_in_hf(const TrainState& state);
  /// `prospect`: appended to the message of a failed save, such as that the next save tries again.
  void report(const std::optional<SaveOutcome>& outcome, const std::string& prospect = "");
  void tidy(const SaveOutcome& outcome) const;
  void purge(int64_t newest) const;

  const JobConfig& config_;
  const CheckpointSection& section_;
  Saved saved_;
  std::filesystem::path folder_;
  bool is_async_;
  bool writes_ = true;
  mutable FolderTurn turn_;  // of rank 0, from the preparation of a save to the end of its purge
  Staging staging_;
  double held_seconds_ = 0;       // how long the last save held the training thread
  int64_t last_saved_step_ = -1;  // complete or in progress
  std::string last_error_;        // of the last save; empty: complete or in progress
  std::optional<LocalSession> local_;
  bool is_local_told_ = false;    // the first local save was logged
  std::unique_ptr<Saver> saver_;  // null where saving is off
};

}  // namespace titan::core
