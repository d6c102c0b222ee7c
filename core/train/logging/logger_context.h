// Describes standard output for the loggers. Used by assembly.cpp.
#pragma once

#include <titan/logger.h>
#include <titan/program/environment.h>

#include "core/config/schema/job_sections.h"

namespace titan::core {

/// From [metrics], TERM, NO_COLOR (https://no-color.org) and COLUMNS. `is_terminal`: of standard
/// output. If TERM is unset or "dumb", the context has neither color nor redrawing.
LoggerContext logger_context(const MetricsSection& metrics, const Environment& environment,
                             bool is_terminal);

}  // namespace titan::core
