#include "core/estimate/dry_run.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include <titan/log.h>

#include "core/config/selection/component_error.h"
#include "core/config/selection/make_selected.h"
#include "core/config/sources/key_places.h"
#include "core/data/conversation_needs.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"
#include "core/estimate/memory_limit.h"
#include "core/train/assembly/run_folder.h"
#include "core/train/assembly/run_loss.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// Larger data are only looked for, because opening them may read all of them.
constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;

/// Whether the file, or the files in the folder, exceed kMostBytes. For a pattern or a prefix of
/// file names: the files in its folder.
bool is_large(const std::string& path) {
  if (path.empty()) return false;
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error) > kMostBytes;
  fs::path folder = path.substr(0, path.find_first_of("*?["));
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  if (folder.empty()) folder = ".";
  uintmax_t bytes = 0;
  int count = 0;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += entry->file_size(ignored);
    if (bytes > kMostBytes || ++count > 1000) return true;
  }
  return false;
}

class DryRun {
 public:
  DryRun(const JobConfig& config, Registry& registry, Diagnostics& diagnostics)
      : config_(config), registry_(registry), diagnostics_(diagnostics) {}

  std::unique_ptr<Run> run(const DryRunOptions& options) {
    std::unique_ptr<Tokenizer> tokenizer;
    if (options.reads_files) {
      attempt([&] { check_run_folder(config_); });
      if (can_make(config_.tokenizer) && !is_unsound("model.hf_assets_path"))
        attempt([&] { tokenizer = open_tokenizer(config_, registry_); });
      if (!is_unsound("model.hf_assets_path") && !has_unsound_options(config_.chat_template))
        attempt([&] { chat_template_ = open_chat_template(config_, registry_); });
      bool all_opened = true;
      for (const DataSource& source : config_.sources)
        all_opened = open(source, tokenizer.get()) && all_opened;
      if (config_.validation_source)
        all_opened = open(*config_.validation_source, tokenizer.get()) && all_opened;
      if (!all_opened && tokenizer) refuse_absent(*tokenizer);
    }
    std::unique_ptr<Run> simulated = simulate(options.rank, tokenizer.get());
    if (simulated && tokenizer)
      attempt([&] { check_vocabulary(*tokenizer, *simulated->model, config_); });
    if (tokenizer) check_conversations(*tokenizer, simulated.get());
    if (diagnostics_.can_start()) {
      if (other_) std::rethrow_exception(other_);
      JobConfig tried = config_;
      attempt([&] { fit_memory_limit(tried, registry_, options.rank); });
    }
    return simulated;
  }

 private:
  bool is_unsound(std::string_view key) const {
    return config_.places && config_.places->has_unsound(key);
  }
  bool can_make(const Selection& component) const {
    return !component.name.empty() && !(config_.places && config_.places->has_unsound(component));
  }

  bool has_unsound_options(const Selection& component) const {
    return config_.places && config_.places->has_unsound(component);
  }

  /// Without a model, assumes that the model isolates documents.
  void check_conversations(const Tokenizer& tokenizer, const Run* simulated) {
    const bool isolates =
        config_.data.isolate_documents || !simulated || simulated->model->isolates_documents();
    for (const ConversationNeeds& needs : needs_)
      attempt([&] {
        require_for_conversations(needs, tokenizer, chat_template_.get(), isolates, config_);
      });
    if (!simulated) return;
    for (const ConversationNeeds& needs : needs_)
      attempt([&] { require_for_loss(needs, compares_answers(*simulated), config_); });
  }

  /// False when `work` failed; a mistake in the configuration is then reported.
  template <class Work>
  bool attempt(Work&& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::config)
        add_mistakes(error, config_, diagnostics_);
      else if (!other_)
        other_ = std::current_exception();
    } catch (const std::exception&) {
      if (!other_) other_ = std::current_exception();
    }
    return false;
  }

  /// Data that cannot be opened may be text, so a missing tokenizer folder that the job names is
  /// reported, too.
  void refuse_absent(const Tokenizer& tokenizer) {
    const NoTokenizer* none = missing_tokenizer(tokenizer);
    const char* key = "model.hf_assets_path";
    if (!none || !config_.places || !config_.places->place(key)) return;
    attempt([&] { refuse_path(none->reason(), key, config_.model.hf_assets_path, config_); });
  }

  /// Whether the data can be opened, or are too large to try.
  bool open(const DataSource& source, const Tokenizer* tokenizer) {
    if (!can_make(source.dataset) || is_unsound(source.path_key)) return false;
    const bool needs_a_look = tokenizer && missing_tokenizer(*tokenizer);
    if (!needs_a_look && !is_absent(source.path) && is_large(source.path)) return true;
    return attempt([&] {
      const auto seed = static_cast<uint64_t>(config_.debug.seed.value_or(0));
      const std::unique_ptr<Dataset> dataset = open_dataset(source, config_, seed, registry_);
      if (tokenizer) require_tokenizer(*dataset, *tokenizer, source.name, config_);
      needs_.push_back(needs_of(*dataset, source.name));
    });
  }

  /// Assembles the run; after the failure of a component tries again without it, so that the others
  /// are checked too.
  std::unique_ptr<Run> simulate(int rank, const Tokenizer* tokenizer) {
    JobConfig left = without_undecided(rank);
    if (!can_make(config_.model_plugin) && !stand_in(left)) return nullptr;
    std::unique_ptr<Run> simulated;
    std::optional<log::Quiet> quiet;
    if (!diagnostics_.can_start()) quiet.emplace();
    for (bool again = true; again;) {
      again = false;
      attempt([&] {
        try {
          simulated = assemble_simulated(left, registry_, rank, tokenizer);
        } catch (const Error& error) {
          again = error.kind() == ErrorKind::config && leave_out_failed(error, left);
          throw;
        }
      });
      if (again && !quiet) quiet.emplace();
    }
    return has_stand_in_ ? nullptr : std::move(simulated);
  }

  /// Replaces a model that cannot be made by one with default options, so that the optimizer can
  /// still be checked.
  bool stand_in(JobConfig& left) {
    if (std::exchange(has_stand_in_, true)) return false;
    Selection& model = left.model_plugin;
    if (model.name.empty()) model = {.kind = "model", .name = ModelSection{}.name};
    try {
      const Schema& schema = registry_.component(model.kind, model.name).schema;
      const std::shared_ptr<void> defaults = schema.make(Value::map());
      model.options = defaults ? schema.read(defaults.get()) : Value::map();
    } catch (const Error&) {
      return false;
    }
    left.transforms.clear();
    left.loggers.clear();
    left.loss.name.clear();
    left.optimizer_groups.clear();
    return true;
  }

  /// The job without the components whose options, or the keys that feed them, are known to be
  /// wrong.
  JobConfig without_undecided(int& rank) const {
    JobConfig left = config_;
    const bool is_layout_unsound = is_unsound("parallelism");
    const std::string& pipeline = config_.parallelism.pipeline_parallel;
    std::erase_if(left.transforms, [&](const Selection& chosen) {
      const bool is_parallelism = chosen.kind == "parallelism";
      const bool has_no_plan = is_parallelism && chosen.name == pipeline && !config_.pipeline_plan;
      return !can_make(chosen) || (is_parallelism && is_layout_unsound) || has_no_plan;
    });
    if (is_unsound("training.seq_len") || is_unsound("training.dtype") ||
        is_unsound("training.mixed_precision_param"))
      std::erase_if(left.transforms,
                    [](const Selection& chosen) { return chosen.kind != "converter"; });
    if (!can_make(left.optimizer)) left.optimizer.name.clear();
    if (!can_make(left.lr_scheduler) || is_unsound("training.steps"))
      left.lr_scheduler.name.clear();
    if (!can_make(left.loss)) left.loss.name.clear();
    std::erase_if(left.loggers, [&](const Selection& chosen) { return !can_make(chosen); });
    std::erase_if(left.watchers, [&](const Selection& chosen) { return !can_make(chosen); });
    for (OptimizerGroup& group : left.optimizer_groups)  // their patterns are checked anyway
      if (!can_make(group.optimizer)) group.optimizer.name.clear();
    if (rank >= config_.layout.grid.world_size()) rank = 0;
    return left;
  }

  static bool leave_out(Selection& chosen, const Selection& failed) {
    if (chosen.name.empty() || chosen.section != failed.section) return false;
    chosen.name.clear();
    return true;
  }

  bool leave_out_failed(const Error& error, JobConfig& left) {
    const Selection* failed = component_of(error);
    if (!failed) {  // the groups' patterns match no parameters
      const bool has_groups = !left.optimizer_groups.empty();
      left.optimizer_groups.clear();
      return has_groups;
    }
    const Selection& component = *failed;
    if (component.kind == "model") return stand_in(left);
    if (component.kind == "optimizer") {
      bool has_left_out = leave_out(left.optimizer, component);
      for (OptimizerGroup& group : left.optimizer_groups)
        has_left_out = leave_out(group.optimizer, component) || has_left_out;
      return has_left_out;
    }
    if (component.kind == "lr_scheduler") {
      left.lr_scheduler.name.clear();
      return true;
    }
    if (component.kind == "loss") return leave_out(left.loss, component);
    if (component.kind == "chat_template") return leave_out(left.chat_template, component);
    std::vector<Selection>& others = component.kind == "logger"    ? left.loggers
                                     : component.kind == "watcher" ? left.watchers
                                                                   : left.transforms;
    return std::erase_if(others, [&](const Selection& chosen) {
             return chosen.kind == component.kind && chosen.name == component.name;
           }) > 0;
  }

  const JobConfig& config_;
  Registry& registry_;
  Diagnostics& diagnostics_;
  std::unique_ptr<ChatTemplate> chat_template_;
  std::vector<ConversationNeeds> needs_;  // of the sources that were opened
  bool has_stand_in_ = false;
  std::exception_ptr other_;  // the first error that is not a mistake in the configuration
};

}  // namespace

std::unique_ptr<Run> dry_run(const JobConfig& config, Registry& registry,
                             const DryRunOptions& options, Diagnostics& diagnostics) {
  return DryRun(config, registry, diagnostics).run(options);
}

}  // namespace titan::core
