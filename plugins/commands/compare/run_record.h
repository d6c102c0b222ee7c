// What a run has written down about its numbers, read from its folder: configuration, metrics,
// fingerprints and traces of tensors. Used by titan compare.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace titan::commands {

/// One tensor of a step, or one rank's part of it (plugins/watchers/debugging/tensor_trace.h has
/// the file's form).
struct TracedTensor {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;

  int rank = 0;
  std::string kind;  ///< "output"
  std::string name;
  Key key;  ///< order of the computation: phase, microbatch, layer, sequence
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t count = 0;
  double mean = 0, rms = 0, min = 0, max = 0;
  int64_t num_nan = 0, num_inf = 0;
  uint64_t hash = 0;
  std::vector<int64_t> offsets, of;  ///< the rectangle of the whole; empty: not of a weight
  std::optional<int64_t> first_row;  ///< of the global batch; of activations
  int64_t num_rows = 0;
};

/// Of one rank: what a tensor is found by in the other run's trace.
using TraceName = std::tuple<int64_t, std::string, std::string>;  ///< microbatch, kind, name

struct TracedRank {
  std::string axes;  ///< the run's layout, as text
  /// By step; the last one that the run wrote. Every use of a module that is run several times.
  std::map<int64_t, std::map<TraceName, std::vector<TracedTensor>>> steps;
};

struct RunRecord {
  std::string folder;
  /// Dotted keys of config.toml and their values as JSON.
  std::map<std::string, std::string> config;
  /// What the last start found or resolved, as JSON: "ranks", "tokens a step", "device", "build".
  std::map<std::string, std::string> start;
  /// By step, by tag: losses, norms, learning rates; no times. NaN and infinities as they are.
  std::map<int64_t, std::map<std::string, double>> numbers;
  std::map<int64_t, std::string> tokens;                     ///< fingerprints by step
  std::vector<std::pair<std::string, std::string>> weights;  ///< at the start: name, fingerprint
  std::map<int, TracedRank> trace;                           ///< by rank

  bool has_fingerprints() const { return !tokens.empty() || !weights.empty(); }
};

/// Throws a config Error where `folder` is none of a run, a data Error with file and line for what
/// cannot be read. What a run did not write is empty; a last line that was cut off is left out.
RunRecord read_run(const std::string& folder);

}  // namespace titan::commands
