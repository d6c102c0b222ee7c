// What the page of titan report is given: the runs as JSON, thinned out to a size that a page can
// carry. The scripts in page/ draw it.
#pragma once

#include <vector>

#include <titan/value.h>

#include "run_folder.h"

namespace titan::commands {

/// How much of long runs is kept, over all runs of the report.
struct ReportLimits {
  int64_t curve_numbers = 90'000;   ///< of all curves: longer ones become buckets
  int64_t timeline_spans = 12'000;  ///< of all steps that can be chosen
  size_t breakdown_bars = 120;      ///< of each run: neighbouring intervals are added up
};

/// Text from the files is made visible (titan/shown_text.h), numbers are rounded to 7 digits. The
/// same runs give the same value.
Value to_page_data(const std::vector<RunFolder>& runs, const ReportLimits& limits = {});

/// The curves of `runs` alone; one list item per run:
///
///   {"steps": [[1, 2, ...], ...],             lists of steps, which curves refer to by index
///    "curves": {"lr": {"s": 0, "v": [...]},   every value, at steps[0]
///               "loss": {"s": 1, "e": 2, "v": [...], "lo": [...], "hi": [...]}}}
///                     buckets from steps[1] to steps[2]: mean, lowest and highest value
///
/// A value that is not finite is a string ("nan", "inf", "-inf") where every value is kept; where
/// there are buckets it stands in "odd", a list of [step, "nan"], of which "num_odd" there are.
Value curve_data(const std::vector<const Metrics*>& runs, int64_t most_numbers);

}  // namespace titan::commands
