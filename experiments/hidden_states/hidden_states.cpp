// Watcher maintainers/hidden_states: writes outputs of chosen modules in chosen steps, as safetensors.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <titan/checkpoints/safetensors.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/name_pattern.h>
#include <titan/plugin.h>
#include <titan/recompute.h>
#include <titan/watcher.h>

namespace {

struct HiddenStatesOptions {
  std::vector<std::string> modules = {"layers.0"};
  std::vector<int64_t> steps = {1};
};

/// `<dump folder>/hidden_states/step_<s>/rank_<r>.safetensors`: for each module of this rank, under its path, one float32 tensor
/// (rows of this rank, S, features), microbatches concatenated. Metadata: "first_row", the index in the global batch.
class HiddenStates final : public titan::Watcher, public titan::StepMember, public titan::GradientReducer {
 public:
  HiddenStates(const HiddenStatesOptions& options, const titan::WatcherContext& context) : options_(options), context_(context) {}

  void match(titan::ModelPart& whole) override {
    for (const std::string& pattern : options_.modules) {
      bool fits = false;
      whole.visit_modules([&](const std::string& path, titan::nn::Module&) { fits = fits || titan::matches_pattern(path, pattern); });
      TITAN_CHECK(fits, config, "modules: '", pattern, "' matches no module of the model; '*' matches any text");
    }
  }
  void attach(titan::ModelPart& part) override {
    part.visit_modules([this](const std::string& path, titan::nn::Module& module) {
      if (!titan::matches_any(path, options_.modules)) return;
      module.wrap([this, path](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
        const at::Tensor y = next(x, batch);
        if (is_open_ && titan::is_first_run()) states_[path].push_back(y.detach().to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
        return y;
      });
    });
  }
  std::vector<titan::StepMember*> members() override { return {this}; }
  titan::GradientReducer* follower() override { return this; }
  bool reads_numbers() const override { return false; }
  void start(const titan::WatcherStart& start) override { first_row_ = start.first_row; }

  bool undoes_steps() const override { return false; }
  void begin(titan::Step& step) override {
    is_due_ = std::find(options_.steps.begin(), options_.steps.end(), step.number) != options_.steps.end();
  }
  void commit(const titan::Step& step) override { write(step.number); }
  void skip(const titan::Step& step) override { write(step.number); }

  void begin_step() override {
    states_.clear();
    is_open_ = is_due_;
  }
  void start_microbatch(bool) override {}
  void finish_gradients() override { is_open_ = false; }

 private:
  void write(int64_t step) {
    if (states_.empty()) return;
    std::map<std::string, at::Tensor> whole;
    std::vector<titan::TensorEntry> entries;
    for (const auto& [path, of_microbatches] : states_) {
      whole[path] = at::cat(of_microbatches).contiguous();
      entries.push_back({.name = path, .dtype = "F32", .shape = whole[path].sizes().vec()});
    }
    titan::lay_out(entries);
    std::string bytes = titan::header_bytes(entries, {{"first_row", std::to_string(first_row_)}});
    for (const titan::TensorEntry& entry : entries)
      bytes.append(static_cast<const char*>(whole[entry.name].const_data_ptr()), whole[entry.name].nbytes());
    const std::filesystem::path folder = std::filesystem::path(context_.dump_folder) / "hidden_states" / ("step_" + std::to_string(step));
    std::filesystem::create_directories(folder);
    titan::write_text_atomically(folder / ("rank_" + std::to_string(context_.mesh.rank()) + ".safetensors"), bytes);
    states_.clear();
  }

  HiddenStatesOptions options_;
  titan::WatcherContext context_;
  std::map<std::string, std::vector<at::Tensor>> states_;  // of the current attempt of the step
  int64_t first_row_ = 0;
  bool is_due_ = false, is_open_ = false;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<HiddenStates>("maintainers/hidden_states", "Writes the outputs of modules as safetensors.")
      .option("modules", &HiddenStatesOptions::modules, "Modules, by pattern of their paths")
      .option("steps", &HiddenStatesOptions::steps, "Steps whose activations are written");
}
