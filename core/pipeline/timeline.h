// Draws the timeline of a pipeline, a row per rank, as text and as SVG. Used by `titan describe
// pipeline_schedule`.
#pragma once

#include <string>

#include <titan/pipelines/analysis.h>

namespace titan::core {

/// One row per rank, columns wide enough for "2F0"; `-` continues the action before it, `.` is
/// idle, and `+` joins two that overlap. Lines have at most `width` characters; longer timelines
/// continue in further blocks.
std::string timeline_text(const PipelineAnalysis& analysis, size_t width);

/// A self-contained drawing with `title` above it and a legend. Each kind (F, B, I, W) has a
/// colour, lighter for a rank's later stages. Boxes show the microbatch's number; a tooltip shows
/// the action and its time.
std::string timeline_svg(const PipelineAnalysis& analysis, const std::string& title);

}  // namespace titan::core
