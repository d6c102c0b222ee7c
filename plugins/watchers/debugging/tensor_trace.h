// Records statistics of the tensors of selected steps, so that titan compare can compare two runs
// layer by layer: [debug] trace_tensors.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>

#include "module_watch.h"
#include "options.h"

namespace titan::debugging {

/// One JSON object per line in <dump folder>/tensor_trace/rank_<r>.jsonl. First a description of
/// the file,
///   {"trace": ["layers.*"], "rank", "world_size", "axes": {"pp": 1, ...}, "from_step"}
/// then for each tensor of each traced step, in order of computation,
///   {"step", "attempt", "tensor": "output", "name", "key": [phase, microbatch, layer, sequence],
///    "dtype", "shape", "count", "mean", "rms", "min", "max", "nan", "inf", "hash"}
/// Weights and gradients also have "offsets" and "of", the position in the whole tensor;
/// activations have "row" and "rows": their sequences in the global batch. Statistics are exact. If
/// a step is repeated, the last attempt counts. Each rank writes its own file; no communication.
class TensorTrace final : public StepMember, public TensorWatcher {
 public:
  TensorTrace(const Options& options, const dist::Mesh& mesh) : options_(options), mesh_(mesh) {}

  /// config Error: a pattern matches none of `names`.
  void check(const std::vector<std::string>& names) const;
  /// [before the first step] `resumed_step`: appends to the file; 0: truncates it. `first_row`: of
  /// this rank's rows in the global batch. Throws an io Error when the file cannot be written.
  void start(const std::string& dump_folder, int64_t resumed_step, int64_t first_row);

  bool watches(const Step& step) override;
  bool wants(std::string_view name) const override;
  void see(const TensorPlace& place, const at::Tensor& tensor) override;

  bool undoes_steps() const override { return false; }
  void commit(const Step&) override { write(); }
  void skip(const Step&) override { write(); }
  /// An attempt that ends the run is written too, for diagnosis.
  void abort(const Step&) override { write(); }

 private:
  void write();

  Options options_;
  const dist::Mesh& mesh_;
  std::string path_;
  std::ofstream out_;
  int64_t step_ = 0, attempt_ = 1;
  int64_t first_row_ = 0;
  std::string lines_;  // of this attempt
};

}  // namespace titan::debugging
