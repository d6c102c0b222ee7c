// Plugin kind `pipeline_schedule`: the order in which the ranks of a pipeline work on its stages
// and microbatches. No torch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>

namespace titan {

/// The size of a pipeline.
struct PipelineShape {
  int num_ranks = 1;
  int num_stages = 1;  ///< over all ranks; a multiple of num_ranks
  int num_microbatches = 1;

  int stages_per_rank() const { return num_stages / num_ranks; }
};

/// One action of one rank on one stage. The letters are those of PyTorch's schedule tables: "2F0"
/// is the forward of stage 2 for microbatch 0.
struct PipelineAction {
  enum class Kind {
    forward,        ///< F
    backward,       ///< B: gradients of the stage's input and of its weights
    input_grad,     ///< I: of its input alone; keeps the tensors that W needs
    weight_grad,    ///< W: of its weights alone, after I
    send_output,    ///< SEND_F: the stage's output to the rank of stage + 1
    receive_input,  ///< RECV_F: the stage's input from the rank of stage - 1
    send_grad,      ///< SEND_B: the gradient of the stage's input to the rank of stage - 1
    receive_grad,   ///< RECV_B: the gradient of the stage's output from the rank of stage + 1
  };
  Kind kind = Kind::forward;
  int stage = 0;       ///< counted from 0 over the whole model
  int microbatch = 0;  ///< counted from 0
  /// This action and the next may run at the same time: "(0F3;3B1)OVERLAP_F_B".
  bool overlaps_next = false;

  bool operator==(const PipelineAction&) const = default;
};

/// The actions of each rank, in order.
using PipelineTable = std::vector<std::vector<PipelineAction>>;

/// "2F0", "2SEND_F0".
TITAN_API std::string to_string(const PipelineAction& action);

/// Inputs of a schedule: none.
struct PipelineScheduleContext {};

/// A pure function from shape to table. The core derives everything else from the table: which rank
/// holds which stage, the sends and receives, and whether the table can run at all.
class TITAN_API PipelineSchedule {
 public:
  static constexpr const char* kKind = "pipeline_schedule";
  using Interface = PipelineSchedule;
  using Context = PipelineScheduleContext;

  virtual ~PipelineSchedule();

  /// Default for the number of stages of the whole model.
  virtual int default_num_stages(int num_ranks) const = 0;
  /// Why this schedule cannot run a shape, as a sentence that starts with the requirement ("needs
  /// exactly 1 stage per rank, but there are 2"); empty if it can.
  virtual std::optional<std::string> problem(const PipelineShape& shape) const = 0;
  /// The order of each rank's F, B, I and W actions, without sends and receives. At run time a rank
  /// waits for missing inputs. Requires that problem(shape) is empty.
  virtual PipelineTable plan(const PipelineShape& shape) const = 0;
};

/// A table that was proved to run, including all sends and receives. Made by the core, followed by
/// the executor of a pipeline.
struct PipelinePlan {
  PipelineShape shape;
  std::vector<int> rank_of_stage;
  PipelineTable actions;  ///< per rank, with SEND and RECV
};

}  // namespace titan
