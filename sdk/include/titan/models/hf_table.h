// A model's Hugging Face config.json as one table. Each row describes a key, for writing, reading
// and comparing. No torch.
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
  /// The option of [model] that the key sets, "rope_scaling.scaling_factor" within a table; empty:
  /// none.
  std::string option;
  Value ours;         ///< the value that an export writes
  Value absent = {};  ///< transformers' default where the key is missing or null; null: none
  Use use = compared;
  /// If the key is missing, the option stays unset, because Titan derives it from the other options
  /// as transformers does.
  bool follows = false;
};

/// A key that has the same value in every network of the model, and the same default in
/// transformers.
TITAN_API HfKey hf_fixed(std::string key, Value value);
/// A key without an option that changes no results.
TITAN_API HfKey hf_written(std::string key, Value value);
/// A key that is never written; `absent`: transformers' default.
TITAN_API HfKey hf_compared(std::string key, Value absent = {});

/// The stretching of rotary positions: the keys of rope_scaling (transformers 4) or rope_parameters
/// (5).
struct TITAN_API HfRope {
  std::string type = {};    ///< "yarn"; options are read only from a table of this type
  std::vector<HfKey> keys;  ///< within the table; hf_rope_members() are compared without a row
  std::string type_key = "rope_type";

  /// The table as an export writes it.
  Value written() const;
};

/// The functions receive a config.json in which the rope keys are moved to the top level
/// (hf_flattened_rope).
struct HfTable {
  std::vector<std::string> model_types;  ///< values of model_type that the model can read
  std::vector<HfKey> keys;               ///< in the order in which they are written
  HfRope rope = {};
  std::vector<HfMember> rope_members = hf_rope_members();
  /// Normalises a config.json, Titan's or another, where a setting can be written in several ways;
  /// null: unchanged.
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

/// The value of a key; `absent` if it is missing or null, or if `config` is not a map.
TITAN_API Value hf_value(const Value& config, const char* key, Value absent = {});
/// The quotient of two integers, as transformers computes the width of a head; null if one of them
/// is missing or not an integer.
TITAN_API Value hf_quotient(const Value& config, const char* dividend, const char* divisor);

}  // namespace titan::models
