#include "core/config/legacy/legacy_names.h"

#include <algorithm>
#include <set>
#include <string>

#include <titan/program/text.h>

namespace titan::core {
namespace {

const OldName* find_old(const KeyPath& path) {
  const std::string key = dotted(path);
  for (const OldName& name : old_names())
    if (name.old_key == key) return &name;
  return nullptr;
}

/// Whether a section, such as [float8] or [mx], exists only for keys that are translated.
bool is_old_section(const KeyPath& path) {
  const std::string prefix = dotted(path) + ".";
  return std::any_of(old_names().begin(), old_names().end(),
                     [&](const OldName& name) { return name.old_key.starts_with(prefix); });
}

/// Schedule names used to have underscores; case is ignored.
Value current_schedule(const Value& value) {
  if (!value.is_string()) return value;
  const std::string word = lower_case(value.as_string());
  if (word == "interleaved_1f1b" || word == "flexible_interleaved_1f1b") return "Interleaved1F1B";
  return value;
}

/// "a, b" as a list, for keys that used to be one comma-separated string.
Value words_of(const std::string& text) {
  Value::List items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string item(trimmed(std::string_view(text).substr(begin, comma - begin)));
    if (!item.empty()) items.emplace_back(std::move(item));
    begin = comma + 1;
  }
  return items;
}

class Translator {
 public:
  Translator(const OptionTable& table, int world_size, Diagnostics& diagnostics)
      : table_(table), world_size_(world_size), diagnostics_(diagnostics) {}

  TranslatedSettings translate(const SettingList& source) {
    for (const Setting& setting : source.settings) {
      if (dotted(setting.path) != "training.data_parallel_type") continue;
      replicates_ = setting.value == Value("ddp");
    }
    for (const Setting& setting : source.settings)
      replicas_given_ |= dotted(setting.path) == "training.data_parallel_degree";

    for (const Setting& setting : source.settings) {
      const OldName* old = table_.find(setting.path) ? nullptr : find_old(setting.path);
      if (old)
        translate(*old, setting);
      else
        keep(setting);
    }
    for (const TableHeader& header : source.tables)
      if (table_.is_section(header.path) || !is_old_section(header.path))
        result_.list.tables.push_back(header);
    report_contradictions();
    return std::move(result_);
  }

 private:
  void keep(Setting setting) {
    const std::string key = dotted(setting.path);
    const bool was_word = key == "checkpoint.exclude_from_loading";
    const bool may_be_word = was_word || key == "quantize.grouped_mm.float8.fqns" ||
                             key == "quantize.grouped_mm.mx.fqns";
    if (may_be_word && setting.value.is_string()) {
      if (was_word)
        diagnostics_.warning(setting.where, key + " as a string is deprecated",
                             "write a list: [\"optimizer\"]");
      setting.value = words_of(setting.value.as_string());
    }
    if (key == "model.name" && setting.value.is_string())
      setting.value = std::string(current_model_name(setting.value.as_string()));
    result_.list.settings.push_back(std::move(setting));
  }

  void translate(const OldName& old, const Setting& setting) {
    const Value& value = setting.value;
    switch (old.how) {
      case Translation::same:
        if (replicates_ && old.old_key == "training.data_parallel_degree") {
          const bool all = value.is_integer() && value.as_integer() < 0;
          put(old, setting, "parallelism.data_parallel_replicate_degree",
              all ? Value(world_size_) : value);
        } else {
          put(old, setting, old.new_key, value);
        }
        return;
      case Translation::inverted:
        put(old, setting, old.new_key, value.is_boolean() ? Value(!value.as_boolean()) : value);
        return;
      case Translation::schedule:
        put(old, setting, old.new_key, current_schedule(value));
        return;
      case Translation::fused:
        put(old, setting, old.new_key,
            value.is_boolean() ? Value(value.as_boolean() ? "fused" : "foreach") : value);
        return;
      case Translation::mx_recipe:
        put(old, setting, old.new_key, value == Value("mxfp8") ? Value("mxfp8_cublas") : value);
        return;
      case Translation::no_effect:
        warn(old, setting, "has no effect");
        return;
      case Translation::refused:
        diagnostics_.error(setting.key, quoted(old) + " is not used any more",
                           std::string(old.hint));
        return;
      case Translation::norm_type:
        ignore_if(old, setting, {"rmsnorm", "fused_rmsnorm", "compiled_rmsnorm"},
                  "the model has RMSNorm only");
        return;
      case Translation::interval_type:
        ignore_if(old, setting, {"steps"}, "checkpoint.interval is counted in steps");
        return;
      case Translation::data_parallel_type:
        if (replicates_) {
          put(old, setting, "parallelism.data_parallel_shard_degree", 1);
          if (!replicas_given_)
            put(old, setting, "parallelism.data_parallel_replicate_degree", world_size_);
        } else {
          ignore_if(old, setting, {"fsdp"}, "use the degrees in [parallelism]");
        }
        return;
      default:
        if (request_is_sound(old, setting)) result_.later.push_back({old.how, setting});
        return;
    }
  }

  bool request_is_sound(const OldName& old, const Setting& setting) {
    const Value& value = setting.value;
    const bool fits = old.how == Translation::append_float8
                          ? value.is_boolean() || value.is_string()
                      : old.flag == OptionType::boolean ? value.is_boolean()
                      : old.flag == OptionType::integer ? value.is_integer()
                      : old.flag == OptionType::list    ? value.is_list()
                                                        : value.is_string();
    if (!fits)
      diagnostics_.error(setting.where, quoted(old) + " must be of type " + to_string(old.flag) +
                                            ", got " + to_json(value));
    else
      warn(old, setting, "is an old name; use " + std::string(old.new_key));
    return fits;
  }

  void ignore_if(const OldName& old, const Setting& setting, std::vector<std::string> words,
                 const char* why) {
    const auto known = [&](const std::string& word) { return setting.value == Value(word); };
    if (std::any_of(words.begin(), words.end(), known))
      warn(old, setting, "has no effect");
    else
      diagnostics_.error(setting.where,
                         quoted(old) + " = " + to_json(setting.value) + " is not supported", why);
  }

  void put(const OldName& old, const Setting& setting, std::string_view new_key, Value value) {
    const bool inverted = old.how == Translation::inverted;
    warn(old, setting,
         "is an old name; use " + std::string(new_key) + " = " + to_json(value) +
             (inverted ? " (it means the opposite)" : ""));
    keep({split_dotted(new_key), std::move(value), setting.key, setting.where,
          std::string(old.old_key)});
  }

  void warn(const OldName& old, const Setting& setting, const std::string& what) {
    if (warned_.insert(std::string(old.old_key)).second)
      diagnostics_.warning(setting.key, quoted(old) + " " + what);
  }

  void report_contradictions() {
    const auto& settings = result_.list.settings;
    const auto name = [](const Setting& s) {
      return s.spelled.empty() ? dotted(s.path) : s.spelled;
    };
    for (size_t i = 0; i < settings.size(); ++i) {
      const Setting& old = settings[i];
      if (old.spelled.empty()) continue;
      for (size_t j = 0; j < settings.size(); ++j) {
        const Setting& other = settings[j];
        const bool is_second_sight = j < i && !other.spelled.empty();
        if (old.path != other.path || old.spelled == other.spelled || old.value == other.value ||
            is_second_sight)
          continue;
        diagnostics_.error(old.where,
                           "'" + name(old) + "' and '" + name(other) +
                               "' are both set and differ: " + dotted(old.path) + " would be " +
                               to_json(old.value) + " or " + to_json(other.value) + " (" +
                               other.where.to_string() + ")",
                           "remove " + name(old));
      }
    }
  }

  static std::string quoted(const OldName& old) { return "'" + std::string(old.old_key) + "'"; }

  const OptionTable& table_;
  int world_size_;
  Diagnostics& diagnostics_;
  TranslatedSettings result_;
  std::set<std::string> warned_;
  bool replicates_ = false;      // data_parallel_type = "ddp"
  bool replicas_given_ = false;  // data_parallel_degree is given
};

}  // namespace

TranslatedSettings translate_old_names(const SettingList& source, const OptionTable& table,
                                       int world_size, Diagnostics& diagnostics) {
  return Translator(table, world_size, diagnostics).translate(source);
}

}  // namespace titan::core
