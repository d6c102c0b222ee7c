// What loggers are told about where standard output goes. Used by assembly.cpp.
#pragma once

#include <titan/logger.h>
#include <titan/program/environment.h>

#include "core/config/schema/job_sections.h"

namespace titan::core {

/// By [metrics], TERM, NO_COLOR (https://no-color.org) and COLUMNS. `is_terminal`: of standard
/// output. A terminal that does not say what it can do is as good as none.
LoggerContext logger_context(const MetricsSection& metrics, const Environment& environment,
                             bool is_terminal);

}  // namespace titan::core
