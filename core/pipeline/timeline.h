// Draws when the ranks of a pipeline do what: as text and as SVG. Used by `titan describe
// pipeline_schedule`.
#pragma once

#include <string>

#include <titan/pipelines/analysis.h>

namespace titan::core {

/// One row per rank, wide enough columns for "2F0"; `-` goes on with the action before it, `.` is
/// idle, and `+` joins two that overlap. Lines of at most `width` characters: what is longer goes
/// on in further blocks.
std::string timeline_text(const PipelineAnalysis& analysis, size_t width);

/// A drawing that stands alone: a colour per kind (F, B, I, W), lighter for a rank's later stages,
/// the microbatch's number in each box, the action and its time when pointed at, a legend.
/// `title` stands above it.
std::string timeline_svg(const PipelineAnalysis& analysis, const std::string& title);

}  // namespace titan::core
