// Reads the file of a sweep: a base recipe, the keys that vary, seeds, and the metric to compare.
// Used by titan sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <titan/value.h>

namespace titan::commands {

/// The number that a run is judged by, from the series of one tag of metrics.jsonl.
struct SweepMetric {
  enum class Reduce { last, mean, min, max };

  std::string tag = "loss_metrics/global_avg_loss";
  Reduce reduce = Reduce::last;
  int64_t last_steps = 10;  ///< mean: over the entries of this many last steps
};

/// "mean of the last 10 steps of loss_metrics/global_avg_loss"
std::string to_text(const SweepMetric& metric);

/// A key of the configuration, dotted, and its value.
using Override = std::pair<std::string, Value>;

/// A text as it is, other values as JSON.
std::string value_text(const Value& value);

struct SweepCase {
  std::string name;  ///< unique: of [[case]], or the overrides as text
  std::vector<Override> overrides;
};

struct SweepFile {
  std::filesystem::path file;
  std::filesystem::path config;  ///< the base recipe; empty: the defaults of titan train
  std::filesystem::path folder;  ///< of the results
  std::vector<Override> fixed;   ///< of every run
  std::vector<SweepCase> cases;  ///< of a grid: keys in alphabetical order, the last varies fastest
  std::vector<int64_t> seeds;
  SweepMetric metric;
  int64_t parallel = 0;  ///< runs at a time; 0: one here, no limit under Slurm
  int64_t ranks = 1;     ///< of each run
  int64_t threads = 0;   ///< OMP_NUM_THREADS of a rank; 0: cores / ranks at a time
  std::vector<std::string> slurm_options;  ///< further lines of #SBATCH
};

/// A relative `folder` is below the working directory, a relative `config` below the folder of the
/// sweep. Throws a ConfigError with all mistakes and their places.
SweepFile read_sweep_file(const std::filesystem::path& file);
/// The same from a text; `name` is used in messages.
SweepFile parse_sweep_file(const std::filesystem::path& name, std::string_view text);

}  // namespace titan::commands
