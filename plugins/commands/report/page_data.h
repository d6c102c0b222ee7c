// The data of titan report's page: the runs as JSON, reduced to a size that a page can hold. The
// scripts in page/ draw it.
#pragma once

#include <vector>

#include <titan/value.h>

#include "run_folder.h"

namespace titan::commands {

/// Size limits, for all runs of the report together.
struct ReportLimits {
  int64_t curve_numbers = 90'000;   ///< of all curves: longer curves become buckets
  int64_t timeline_spans = 12'000;  ///< of all selectable steps
  size_t breakdown_bars = 120;      ///< per run: neighbouring intervals are added up
  size_t undone_steps = 500;        ///< per run: skipped and repeated ones
};

/// Text from the files is escaped (titan/shown_text.h), numbers are rounded to 7 digits.
/// Deterministic.
Value to_page_data(const std::vector<RunFolder>& runs, const ReportLimits& limits = {});

/// The curves of `runs` alone; one list item per run:
///
///   {"steps": [[1, 2, ...], ...],             lists of steps, which curves refer to by index
///    "curves": {"lr": {"s": 0, "v": [...]},   every value, at steps[0]
///               "loss": {"s": 1, "e": 2, "v": [...], "lo": [...], "hi": [...]}}}
///                     buckets from steps[1] to steps[2]: mean, lowest and highest value
///
/// A non-finite value is a string ("nan", "inf", "-inf") where every value is kept. With buckets,
/// "odd" lists the first ones as [step, "nan"], and "num_odd" is their total number.
Value curve_data(const std::vector<const Metrics*>& runs, int64_t most_numbers);

}  // namespace titan::commands
