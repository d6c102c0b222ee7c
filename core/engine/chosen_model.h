// The model that a command works on when no run is assembled: from flags and a file as titan train
// takes them, or from a checkpoint. Used by convert_weights.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/tokenizer.h>

#include "core/config/resolve.h"
#include "core/engine/model_sources.h"
#include "core/exchange/merged_weights.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/assembly.h"

namespace titan::core {

/// A model on the meta device. Of a whole job only what says which model it is counts: [model],
/// [tokenizer], [plugins] and training.seq_len; the rest need not fit this machine.
class ChosenModel {
 public:
  /// `command`: for messages. `arguments`: --job.config_file, --section.key. Without a file among
  /// them the configuration of `manifest`, if there is one, lies below them; else
  /// model.hf_assets_path is `folder`, where the weights come from, unless it is given. Throws as
  /// resolve(), and a ConfigError when a converter is not there that may count, or two do; warnings
  /// are logged.
  ChosenModel(const std::string& command, const std::vector<std::string>& arguments,
              const std::optional<CheckpointManifest>& manifest,
              const std::filesystem::path& folder, CountedConverters converters);

  const JobConfig& config() const { return config_; }
  Registry& registry() { return registry_; }
  const Model& model() const { return *model_.model; }
  /// Without converters.
  const ModelPart& part() const { return *model_.part; }
  /// "llama3 8B", "llama3 8B with lora"
  std::string name() const;
  /// The converter that counts; null when there is none.
  const Selection* converter() const { return converter_; }
  /// The model anew with that converter applied on a single rank, whose values will be on the
  /// CPU. Must not outlive this object.
  ConvertedModel converted();
  /// The one in model.hf_assets_path; null when there is none, or none that [tokenizer] name can
  /// read, which is logged. Throws a config Error when it has more ids than the model.
  std::unique_ptr<Tokenizer> tokenizer();

 private:
  JobSources sources_;
  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  MetaModel model_;
  const Selection* converter_ = nullptr;
  dist::Mesh mesh_;  // of one rank
  std::unique_ptr<Device> device_;
};

}  // namespace titan::core
