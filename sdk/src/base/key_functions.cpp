// Defines the key function (first virtual, usually the destructor) of every torch-free interface,
// so that each type has one vtable and one type_info in the process, for all libraries.
#include <chrono>

#include <titan/chat_template.h>
#include <titan/command.h>
#include <titan/dataset.h>
#include <titan/job_parts.h>
#include <titan/logger.h>
#include <titan/lr_scheduler.h>
#include <titan/pipeline_schedule.h>
#include <titan/plugin_files.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

namespace titan {

ChatTemplate::~ChatTemplate() = default;
Command::~Command() = default;
OpenedData::~OpenedData() = default;
OpenedChat::~OpenedChat() = default;
JobParts::~JobParts() = default;
PluginFiles::~PluginFiles() = default;
IndexedDocuments::~IndexedDocuments() = default;
DocumentStream::~DocumentStream() = default;
StreamedDocuments::~StreamedDocuments() = default;
Dataset::~Dataset() = default;
Logger::~Logger() = default;
double Logger::finish_seconds() const {
  return 10;
}
void Logger::log_histograms(int64_t, std::span<const Histogram>) {}
bool Logger::follows_steps() const {
  return false;
}
void Logger::step_done(const StepProgress&) {}
double Logger::log_time() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return log_time_ > 0 ? log_time_ : std::chrono::duration<double>(now).count();
}
LrScheduler::~LrScheduler() = default;
PipelineSchedule::~PipelineSchedule() = default;
Tokenizer::~Tokenizer() = default;
SpecialTokenText::~SpecialTokenText() = default;

}  // namespace titan
