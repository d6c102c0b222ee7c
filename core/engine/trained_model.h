// A model with its trained weights on the ranks of a layout, without anything that trains. Used by
// engines.cpp.
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
  /// nothing is there or no model knows it.
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
  std::unique_ptr<Run> run_;  // before with_ranks: tokenizer, chat template and model alone
  std::optional<RunEngine> engine_;
};

}  // namespace titan::core
