// Opens single parts of a job (data set, chat template) for commands of plugins. Used by titan and
// titan-train.
#pragma once

#include <titan/job_parts.h>

namespace titan::core {

class PartsOpener final : public JobParts {
 public:
  std::unique_ptr<OpenedData> open_data(const DataRequest& request) override;
  std::unique_ptr<OpenedChat> open_chat(const ChatRequest& request) override;
  std::string dump_folder(const std::vector<std::string>& job) override;
};

}  // namespace titan::core
