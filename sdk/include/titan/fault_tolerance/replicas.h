// Training in several replica groups, each a job of its own with all weights: the interface of a
// transform that connects them, and what the trainer offers to it. Used by plugins for fault
// tolerance.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <titan/dist/group.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/logger.h>
#include <titan/step.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(replicas);

namespace titan {

/// The run of this group, as a ReplicaMember reads and changes it. Thread: trainer thread, between
/// steps, unless a function says otherwise. Every rank of the group calls the same functions.
class TITAN_API ReplicaRun {
 public:
  virtual ~ReplicaRun();

  /// The last step that was committed or skipped.
  virtual int64_t step() const = 0;
  /// Identifies the state with which this process began. Groups with equal texts hold equal bits.
  virtual std::string start() const = 0;
  /// Program, plugins and settings that all groups of a run have in common: a list of pairs.
  virtual Value identity() const = 0;

  /// Rows of the global batch.
  virtual int64_t num_rows() const = 0;
  /// Rows that the ranks of this group compute at a time. Each group gets a multiple of them.
  virtual int64_t rows_per_round() const = 0;
  /// [before each step] Remembers the position after step(), to which a step that is begun anew
  /// returns.
  virtual void keep_position() = 0;
  /// The next step and those after it read these rows of the global batch, from the position after
  /// step(). Replaces data that was read for a step that did not count.
  virtual void read_rows(int64_t first, int64_t count) = 0;
  /// The position of all rows that this rank knows, after step(). Positions of rows that other
  /// ranks read may be older: a rank that takes such a row over reads up to the present position.
  virtual Value data_position() const = 0;
  /// Adds what another rank knows.
  virtual void add_data_position(const Value& position) = 0;

  /// Copies weights, optimizer states, counters, data position and random generators of this rank
  /// to `peer`, which calls `take` at the same time. Throws as the group's collectives.
  virtual void give(const dist::Group& group, int peer) = 0;
  /// Replaces the state of this rank by that of `peer`, bit for bit: step() changes. Each tensor's
  /// hash is compared. After an exception the state is a mixture, and the rank must take again.
  virtual void take(const dist::Group& group, int peer) = 0;

  /// Whether this group writes the checkpoints of the run. Initially true.
  virtual void write_checkpoints(bool writes) = 0;

  /// Calls `change`, which may replace weights and states, when no checkpoint is copying them;
  /// then every AfterOptimizerStep. Also right after an optimizer step.
  virtual void change_weights(const std::function<void()>& change) = 0;
};

/// Optional interface of a transform: this job is one replica group of several. Two in one job are
/// refused by name. Thread: trainer thread.
class TITAN_API ReplicaMember {
 public:
  virtual ~ReplicaMember();

  /// [once, before the first step] `run` and `mesh` outlive this. Sets Mesh::set_replicas to a
  /// group whose collectives do not throw in a step (dist::ChangingGroup::OnFailure::records).
  virtual void join(ReplicaRun& run, dist::Mesh& mesh) = 0;
  /// [before each step, on every rank of the group] Finds the members of the next step, takes over
  /// state and assigns rows where they changed. Returns false on every rank if a stop was
  /// requested. Throws if this group cannot take part.
  virtual bool between_steps() = 0;
  /// [after all ranks of the group have agreed on `judgement`, every rank] The judgement of all
  /// groups; Verdict::restart if a collective of this step has failed.
  virtual Judgement agree(const Step& step, Judgement judgement) = 0;
  /// [when a step threw] Ends the connections to other groups, which need not wait for the end of
  /// this process. Other ranks of the group may be elsewhere: no communication with them.
  virtual void failed() noexcept = 0;

  /// Whether the losses of a step are those of this group's rows alone, because the groups do not
  /// meet in every step. They are then logged as losses of the group.
  virtual bool trains_alone() const { return false; }
  /// [after each step that is logged, on every rank] Scalars to log with it; tags outlive the run.
  virtual std::vector<Scalar> scalars() { return {}; }
};

}  // namespace titan
