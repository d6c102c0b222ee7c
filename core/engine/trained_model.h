// A model with its trained weights on the ranks of a layout, without the parts that train it. Used
// by engines.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/engine.h>

#include "core/config/resolve.h"
#include "core/engine/run_engine.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/runtime/launch_env.h"
#include "core/train/assembly/run.h"

namespace titan::core {

class TrainedModel final : public OpenedModel {
 public:
  /// As EngineHost::open. `command`: "titan generate". Throws as resolve(), and a config Error when
  /// the folder has no weights or belongs to no known model.
  TrainedModel(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
               const LaunchFlags& flags, const std::string& command, bool is_chat);
  ~TrainedModel() override;

  Engine& engine() override { return *engine_; }
  void with_ranks(const std::function<void()>& work) override;

  const JobConfig& config() const { return config_; }

 private:
  std::filesystem::path folder_;
  JobSources sources_;
  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  LaunchEnv launch_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Run> run_;  // before with_ranks: only tokenizer, chat template and model
  std::optional<RunEngine> engine_;
};

}  // namespace titan::core
