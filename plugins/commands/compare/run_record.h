// Reads the numbers that a run recorded in its folder: configuration, metrics, fingerprints and
// traces of tensors. Used by titan compare.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace titan::commands {

/// One tensor of a step, or one rank's part of it. plugins/watchers/debugging/tensor_trace.h
/// describes the file format.
struct TracedTensor {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;

  int rank = 0;
  std::string kind;  ///< "output"
  std::string name;
  Key key;  ///< in order of computation: phase, microbatch, layer, sequence
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t count = 0;
  double mean = 0, rms = 0, min = 0, max = 0;
  int64_t num_nan = 0, num_inf = 0;
  uint64_t hash = 0;
  std::vector<int64_t> offsets, of;  ///< position in the whole tensor; empty: not a weight
  std::optional<int64_t> first_row;  ///< of the global batch; only for activations
  int64_t num_rows = 0;
};

/// Identifies a tensor of one rank in both traces.
using TraceName = std::tuple<int64_t, std::string, std::string>;  ///< microbatch, kind, name

struct TracedRank {
  std::string axes;  ///< the run's layout, as text
  /// By step, from the last attempt at it. A module that runs several times has several entries.
  std::map<int64_t, std::map<TraceName, std::vector<TracedTensor>>> steps;
};

struct RunRecord {
  std::string folder;
  /// Dotted keys of config.toml and their values as JSON.
  std::map<std::string, std::string> config;
  /// Facts recorded by the last start, as JSON: "ranks", "tokens a step", "device", "build".
  std::map<std::string, std::string> start;
  /// By step and tag: losses, norms, learning rates; no times. NaN and infinities are kept.
  std::map<int64_t, std::map<std::string, double>> numbers;
  std::map<int64_t, std::string> tokens;                     ///< fingerprints by step
  std::vector<std::pair<std::string, std::string>> weights;  ///< at the start: name, fingerprint
  std::map<int, TracedRank> trace;                           ///< by rank

  bool has_fingerprints() const { return !tokens.empty() || !weights.empty(); }
};

/// Throws a config Error when `folder` is not a run's folder, a data Error with file and line for
/// unreadable content. Files that the run did not write give empty members; an incomplete last line
/// is ignored.
RunRecord read_run(const std::string& folder);

}  // namespace titan::commands
