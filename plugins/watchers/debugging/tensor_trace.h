// Writes down what the tensors of chosen steps are, so that two runs can be compared layer by
// layer: [debug] trace_tensors. Read by titan compare.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>

#include "module_watch.h"
#include "options.h"

namespace titan::debugging {

/// One JSON object a line in <dump folder>/tensor_trace/rank_<r>.jsonl: first what the file is of,
///   {"trace": ["layers.*"], "rank", "world_size", "axes": {"pp": 1, ...}, "from_step"}
/// then of each tensor of each traced step, in the order of the computation
///   {"step", "attempt", "tensor": "output", "name", "key": [phase, microbatch, layer, sequence],
///   "dtype",
///    "shape", "count", "mean", "rms", "min", "max", "nan", "inf", "hash"}
/// of weights and gradients with "offsets" and "of", the rectangle of the whole tensor; of
/// activations with "row" and "rows": which sequences of the global batch. Statistics are exact.
/// Of a step that is run again the last run counts. Each rank writes its own; no communication.
class TensorTrace final : public StepMember, public TensorWatcher {
 public:
  TensorTrace(const Options& options, const dist::Mesh& mesh) : options_(options), mesh_(mesh) {}

  /// config Error: a pattern fits none of `names`.
  void check(const std::vector<std::string>& names) const;
  /// [before the first step] `resumed_step`: the file goes on behind it; 0: it begins anew.
  /// `first_row`: of this rank's rows in the global batch. io Error when there can be no file.
  void start(const std::string& dump_folder, int64_t resumed_step, int64_t first_row);

  bool watches(const Step& step) override;
  bool wants(std::string_view name) const override;
  void see(const TensorPlace& place, const at::Tensor& tensor) override;

  bool undoes_steps() const override { return false; }
  void commit(const Step&) override { write(); }
  void skip(const Step&) override { write(); }
  /// What is bad is worth seeing: an attempt that ends the run is written too.
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
