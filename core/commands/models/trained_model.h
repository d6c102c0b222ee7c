// A model with its trained weights on the ranks of a layout, without anything that trains. Used by
// titan generate and titan evaluate.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/chat/chat_text.h"
#include "core/checkpoint/start_point.h"
#include "core/config/resolve.h"
#include "core/exchange/hf_folder.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/failure_watch.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/runtime/launch_env.h"
#include "core/train/run.h"

namespace titan::core {

/// What a command wants of a trained model.
struct TrainedModelUse {
  std::string command;  ///< "titan generate": whose --help a report of what is wrong points to
  bool is_chat =
      false;  ///< it is to be talked to, by the job's chat template or that of most models
};

class TrainedModel {
 public:
  /// `folder`: a complete step of ours, a folder of steps, whose newest complete one is taken, or a
  /// Hugging Face folder. `arguments`: --section.key VALUE, for model and layout. Without a
  /// configuration file among them the model is what the checkpoint's manifest says, or what an
  /// installed model makes of config.json (HfExchange::options_for). Converters that change what
  /// weights are for others, such as adapters, count; others do not. Throws as resolve(), and a
  /// config Error when nothing is there or no model knows it.
  TrainedModel(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
               const LaunchFlags& flags, const TrainedModelUse& use);
  ~TrainedModel();

  /// [once, on every rank] Brings the ranks together, loads the weights and runs `work`; errors get
  /// what the other ranks were doing.
  void with_ranks(const std::function<void()>& work);

  // within with_ranks
  Run& run() { return *run_; }
  Rendezvous& rendezvous() { return *rendezvous_; }

  // at any time
  const Model& model() const { return *run_->model; }
  /// Null when there is none.
  const Tokenizer* tokenizer() const;
  /// Null unless it is to be talked to.
  const ChatText* chat() const { return chat_ ? &*chat_ : nullptr; }
  /// Tokens of a sequence that the model is meant for.
  int64_t context() const;
  HfTokenIds token_ids() const;
  const JobConfig& config() const { return config_; }

 private:
  std::filesystem::path folder_;
  JobSources sources_;
  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  LaunchEnv launch_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Run> run_;  // before with_ranks: tokenizer and model alone
  std::optional<ChatText> chat_;
};

}  // namespace titan::core
