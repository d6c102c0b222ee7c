// Opens, trains and converts models for commands of plugins. Used by the programs that link torch.
#pragma once

#include <filesystem>
#include <memory>

#include <titan/engine.h>

namespace titan::core {

class Engines final : public EngineHost {
 public:
  std::unique_ptr<OpenedModel> open(const EngineRequest& request,
                                    const std::filesystem::path& weights, bool is_chat) override;
  int train(const EngineRequest& request, TrainingLoop& loop) override;
  ConversionResult convert(const ConversionRequest& request,
                           const ReportConverted& report) override;
};

}  // namespace titan::core
