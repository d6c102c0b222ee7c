#include "core/parts/job_parts.h"

#include <titan/error.h>

#include "core/config/resolve.h"
#include "core/parts/chosen_chat.h"
#include "core/parts/chosen_source.h"

namespace titan::core {

std::unique_ptr<OpenedData> PartsOpener::open_data(const DataRequest& request) {
  return std::make_unique<ChosenSource>(request);
}

std::unique_ptr<OpenedChat> PartsOpener::open_chat(const ChatRequest& request) {
  return std::make_unique<ChosenChat>(request);
}

std::string PartsOpener::dump_folder(const std::vector<std::string>& job) {
  try {
    return dump_folder_of(read_sources(job));
  } catch (const Error&) {
    return JobSection{}.dump_folder;
  }
}

}  // namespace titan::core
