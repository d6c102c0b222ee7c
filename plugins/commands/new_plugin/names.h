// The names of a new plugin, derived from OWNER/NAME.
#pragma once

#include <map>
#include <string>

namespace titan::commands {

/// Replacements for the placeholders of a template, "@NAME@", in texts and in file names.
using Placeholders = std::map<std::string, std::string>;

struct PluginNames {
  std::string full_name;   ///< "acme/fast_adam"
  std::string owner;       ///< "acme"
  std::string name;        ///< "fast_adam"
  std::string class_name;  ///< "FastAdam"
  std::string library;     ///< "acme_fast_adam"

  /// FULL_NAME, OWNER, NAME, CLASS and LIBRARY.
  Placeholders placeholders() const;
};

/// Throws a config Error if `full_name` is not OWNER/NAME, or the name cannot become that of a
/// class.
PluginNames plugin_names(const std::string& full_name);

/// `text` with every placeholder replaced. A line that holds only a placeholder is left out if its
/// replacement is empty.
std::string filled_in(std::string text, const Placeholders& placeholders);

}  // namespace titan::commands
