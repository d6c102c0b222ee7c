// Checkpoints on disks of the hosts of a run: <job>/<session>/step-<N> in the local folder. Each
// rank writes its own files and part-rank-<r>.json, a manifest of these files; the subfolder copies
// holds the same of another rank. Used by the checkpointer and by resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/export.h>
#include <titan/value.h>

namespace titan {

inline constexpr const char* kLocalCopiesName = "copies";

/// Completes a rank's part of a step: its files are written already.
TITAN_API void write_local_part(const std::filesystem::path& folder, CheckpointManifest manifest,
                                std::vector<ManifestFile> files, int64_t rank);

/// A rank's part of a step, as one rank of the starting run finds it on its host.
struct LocalPart {
  std::string session;  ///< of the run that wrote it
  int64_t step = 0;
  int64_t rank = 0, world_size = 1;  ///< of the writer
  bool is_copy = false;
  double time = 0;     ///< when it was written, seconds since 1970
  std::string folder;  ///< of its files
  std::string damage;  ///< names file and tensor; empty: every byte is as it was written
  int64_t holder = 0;  ///< the rank of the starting run that found it
};
TITAN_API Value to_value(const LocalPart& part);
/// Throws as Members.
TITAN_API LocalPart parse_local_part(const Value& value);

/// The parts after step `after_step` in the folder of a job, of branch `branch`; reads and checks
/// every byte of them. `checker` of `num_checkers` takes the parts of the ranks rank %
/// num_checkers, so that the ranks of a host share the work.
TITAN_API std::vector<LocalPart> find_local_parts(const std::filesystem::path& job_folder,
                                                  int64_t branch, int64_t after_step, int checker,
                                                  int num_checkers);

struct LocalChoice {
  std::vector<LocalPart> parts;    ///< by rank of the writer, all of one step; empty: none is whole
  std::vector<std::string> notes;  ///< each part that could not be used, and what is used instead
};
/// The newest step of which an undamaged part of every rank was found, as its own files or as a
/// copy. Gives the same result for any order of `found`.
TITAN_API LocalChoice choose_local_parts(std::vector<LocalPart> found);

/// Manifest, headers and small files of a part, for the ranks that do not see them.
TITAN_API Value content_of(const LocalPart& part);

struct LocalCheckpoint {
  std::filesystem::path folder;  ///< of rank 0's part, for messages
  Lineage lineage;
  CheckpointManifest manifest;
  TensorIndex index;                         ///< says which rank can read each file
  std::map<std::string, std::string> texts;  ///< content of the files without tensors, by name
};
/// `contents[i]` is content_of(parts[i]). Throws a data Error for parts that do not fit together.
TITAN_API LocalCheckpoint merge_local_parts(const std::vector<LocalPart>& parts,
                                            const std::vector<Value>& contents);

/// After a complete save: removes all other sessions, and the steps of this session before
/// `first_kept`, except the newest of them when `keeps_one_more`.
TITAN_API void remove_local_parts(const std::filesystem::path& job_folder,
                                  const std::string& session, int64_t first_kept,
                                  bool keeps_one_more);

/// A rank of the starting run, and where the run keeps its checkpoints.
struct LocalRun {
  std::filesystem::path local_folder, checkpoint_folder;
  int rank = 0, world_size = 1, local_rank = 0, local_world_size = 1;

  bool is_one_host() const { return world_size == local_world_size; }
};
/// Collective: the values of all ranks for `name`, in the order of ranks.
using FromAllRanks =
    std::function<std::vector<std::string>(const std::string& name, const std::string& own)>;

/// Collective: the newest whole step after `after_step` on the disks of all hosts, of the recorded
/// lineage (below). Absent too if a start with the settings `wanted` begins a branch, or if `own`
/// is known and of another branch. `notes`: as in LocalChoice.
TITAN_API std::optional<LocalCheckpoint> find_local_checkpoint(
    const LocalRun& run, const BranchStart& wanted, const Lineage& own, int64_t after_step,
    const FromAllRanks& from_all, std::vector<std::string>& notes);

/// Local checkpoints of one start of a run.
struct TITAN_API LocalSession {
  std::filesystem::path folder;  ///< of the job
  std::string session;
  int shift = 0;  ///< each rank also writes the files of the rank this far below; 0: no copies
  bool is_first_of_host = false;
  std::string description;  ///< where copies are, for a log line

  std::filesystem::path folder_of(int64_t step) const;
};
/// Collective: names a session and records the lineage.
TITAN_API LocalSession begin_local_session(const LocalRun& run, const Lineage& lineage,
                                           int64_t num_copies, const FromAllRanks& from_all);

/// In the folder of ordinary checkpoints: job and branch of the local ones. After a failure before
/// the first ordinary checkpoint nothing else says it.
inline constexpr const char* kLocalLineageName = "local_lineage.json";
TITAN_API void write_local_lineage(const std::filesystem::path& folder, const Lineage& lineage);
TITAN_API std::optional<Lineage> read_local_lineage(const std::filesystem::path& folder);

}  // namespace titan
