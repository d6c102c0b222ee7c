// A small model under a data-parallel transform on each rank, and the same whole model as the
// reference. Used by the tests of fsdp, ddp and transforms that are combined with them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/optimizer.h>
#include <titan/transform.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"
#include "tests/sdk/nn/slices.h"

namespace titan::testing {

inline constexpr int64_t kVocab = 131;  // not divisible by any number of ranks
inline constexpr int64_t kSeqLen = 6;
inline constexpr int64_t kSeed = 11;

/// The feed-forward of each block has 68 rows.
std::vector<Layer> llama_layers(bool is_tied, int64_t num_layers = 2);

/// Rows [begin, begin + count) of an endless made-up data set; a few labels are ignored.
Batch make_rows(int64_t begin, int64_t count);

/// One rank's model. Without a transform it is the reference.
class Replica {
 public:
  /// `transform`: "" = none. `prepare` runs before the transform is applied, `finish` afterwards.
  using Prepare = std::function<void(ModelPart&)>;
  Replica(std::vector<Layer> layers, const dist::Mesh& mesh, std::string_view transform,
          const Value& options, at::ScalarType dtype, const Prepare& prepare = {},
          Device* device = nullptr, const Prepare& finish = {});

  ModelPart& part() { return part_; }
  GradientReducer& reducer() { return dynamic_cast<GradientReducer&>(*transform_); }

  /// Forward and backward of the microbatches, each with the loss sum over a fixed number; returns
  /// the sum over them.
  double run_step(const std::vector<Batch>& microbatches);

  std::unique_ptr<Optimizer> make_adamw();

 private:
  std::unique_ptr<Device> own_device_;
  ModelPart part_;
  std::unique_ptr<Parallelism> transform_;
};

/// Compares each parameter's shard and gradient with the slices of the whole model's.
void expect_equal_slices(Replica& replica, Replica& whole, double tolerance,
                         const std::string& what);

/// This rank's rows of a global batch, in microbatches.
std::vector<Batch> own_microbatches(const dist::Mesh& mesh, int64_t rows_per_microbatch,
                                    int64_t num_microbatches);

dist::Traffic traffic_of(const dist::Mesh& mesh, const std::string& group,
                         const std::string& operation);

/// Opens every plugin that the ranks use, before their threads start.
void open_plugins();

}  // namespace titan::testing
