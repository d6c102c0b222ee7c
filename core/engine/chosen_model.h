// The model of a command that assembles no run: from flags and a file as for titan train, or from a
// checkpoint. Used by convert_weights.h.
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

/// A model on the meta device. Only the settings that determine the model are used: [model],
/// [tokenizer], [plugins] and training.seq_len. The rest of the job need not fit this machine.
class ChosenModel {
 public:
  /// `command`: for messages. `arguments`: --job.config_file, --section.key. Without a file among
  /// them, the configuration of `manifest` provides the defaults; without a manifest,
  /// model.hf_assets_path defaults to `folder`, the source of the weights. Throws as resolve(), and
  /// a ConfigError when a converter that may count is not installed, or when two count. Warnings
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
  /// The converter that changes exported weights; null when there is none.
  const Selection* converter() const { return converter_; }
  /// A new copy of the model with that converter applied, for a single rank on the CPU. Must not
  /// outlive this object.
  ConvertedModel converted();
  /// The tokenizer in model.hf_assets_path; null when there is none, or when [tokenizer] name
  /// cannot read it, which is logged. Throws a config Error when it has more ids than the model.
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
