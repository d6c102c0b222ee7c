// Implements titan/engine.h, the interface for commands and loops of plugins, over core's Run. Used
// by trained_model and training.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include <titan/engine.h>

#include "core/config/schema/job_config.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/train/assembly/run.h"

namespace titan::core {

class RunEngine final : public Engine {
 public:
  /// Both outlive this. `weights`: a folder whose config.json may give the context length; may be
  /// empty. Throws a config Error for a chat template whose tokenizer cannot encode its text.
  RunEngine(Run& run, const JobConfig& config, std::filesystem::path weights);

  /// [after the rendezvous]
  void connect(Rendezvous& rendezvous) { rendezvous_ = &rendezvous; }

  const Value& config() const override { return config_.resolved; }
  const Model& model() const override { return *run_.model; }
  const Tokenizer* tokenizer() const override;
  const ChatText* chat() const override { return chat_ ? &*chat_ : nullptr; }
  int64_t context() const override;
  std::set<int32_t> end_ids() const override;
  const dist::Mesh& mesh() const override { return run_.mesh; }
  c10::Device device() const override { return run_.device->device(); }
  ModelPart& part() override { return *run_.part; }
  StepExecutor& executor() override { return *run_.executor; }
  std::string from_rank_zero(const std::string& name, const std::string& value) override;

 private:
  Run& run_;
  const JobConfig& config_;
  std::filesystem::path weights_;
  Rendezvous* rendezvous_ = nullptr;
  std::optional<ChatText> chat_;
};

}  // namespace titan::core
