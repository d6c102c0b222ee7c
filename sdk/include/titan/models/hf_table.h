// A model's config.json for Hugging Face as one table: a row for each key, from which it is
// written, read and compared. No torch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/hf_config.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(models_hf_table);

namespace titan::models {

/// One key of config.json.
struct HfKey {
  enum Use {
    compared,       ///< written by an export; another value would change results
    written_only,   ///< written; another value changes no results
    compared_only,  ///< never written; another value would change results
  };
  std::string key;
  /// The option of [model] that the key gives, "rope_scaling.scaling_factor" within a table; empty:
  /// no option says it.
  std::string option;
  Value ours;         ///< what an export writes
  Value absent = {};  ///< transformers' default where the key is missing or null; null: none
  Use use = compared;
  /// Where the key is missing the option stays unset: it follows from others here as it does there.
  bool follows = false;
};

/// A key that has the same value in every network of the model, and the same default in
/// transformers.
TITAN_API HfKey hf_fixed(std::string key, Value value);
/// A key without an option that changes no results.
TITAN_API HfKey hf_written(std::string key, Value value);
/// A key that is never written; `absent`: transformers' default.
TITAN_API HfKey hf_compared(std::string key, Value absent = {});

/// How positions are stretched: the keys of rope_scaling (transformers 4) or rope_parameters (5).
struct TITAN_API HfRope {
  std::string type = {};    ///< "yarn"; options are read only from a table of this type
  std::vector<HfKey> keys;  ///< within the table; hf_rope_members() are compared without a row
  std::string type_key = "rope_type";

  /// The table as an export writes it.
  Value written() const;
};

/// Functions get a config.json with the keys of its rotation beside the others
/// (hf_flattened_rope).
struct HfTable {
  std::vector<std::string> model_types;  ///< those of model_type that the model can read
  std::vector<HfKey> keys;               ///< in the order in which they are written
  HfRope rope = {};
  std::vector<HfMember> rope_members = hf_rope_members();
  /// One way to say what can be said in several, of a config.json of ours or theirs; none: as it
  /// is.
  std::function<Value(Value config)> in_one_way = {};
  /// Sets the options that follow from several keys.
  std::function<void(const Value& config, Value& options)> also_read = {};
};

/// As HfExchange::hf_config.
TITAN_API Value hf_config(const HfTable& table);
/// As HfExchange::options_for.
TITAN_API std::optional<Value> hf_options(const HfTable& table, const Value& theirs);
/// As HfExchange::config_differences; model_type comes first, then keys in the order of the table.
TITAN_API std::vector<std::string> hf_differences(const HfTable& table, const Value& theirs);

/// The value of a key; `absent` where it is missing or null, or `config` no map.
TITAN_API Value hf_value(const Value& config, const char* key, Value absent = {});
/// The quotient of two integers, as transformers makes the width of a head; null where one of them
/// is none.
TITAN_API Value hf_quotient(const Value& config, const char* dividend, const char* divisor);

}  // namespace titan::models
