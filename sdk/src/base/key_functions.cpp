// The key functions (first virtual, usually the destructor) of every torch-free interface stand
// here once, so that each type has one vtable and one type_info in the process, whichever library
// asks.
#include <titan/dataset.h>
#include <titan/logger.h>
#include <titan/lr_scheduler.h>
#include <titan/pipeline_schedule.h>
#include <titan/tokenizer.h>

namespace titan {

IndexedDocuments::~IndexedDocuments() = default;
DocumentStream::~DocumentStream() = default;
StreamedDocuments::~StreamedDocuments() = default;
Dataset::~Dataset() = default;
Logger::~Logger() = default;
LrScheduler::~LrScheduler() = default;
PipelineSchedule::~PipelineSchedule() = default;
Tokenizer::~Tokenizer() = default;

}  // namespace titan
