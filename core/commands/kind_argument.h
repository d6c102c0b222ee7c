// A kind of plugin as an argument of a command. Used by describe and list.
#pragma once

#include <string>

#include <titan/error.h>
#include <titan/suggest.h>

#include "core/plugin/catalog.h"
#include "core/plugin/kinds.h"

namespace titan::core {

/// "activation_checkpoint, converter, ..."
inline std::string listed_kinds() {
  std::string text;
  for (const std::string& kind : plugin_kinds()) text += (text.empty() ? "" : ", ") + kind;
  return text;
}

/// Throws a config Error when there is no such kind of plugin.
inline void require_kind(const std::string& kind) {
  if (find_kind(kind)) return;
  const std::string hint = did_you_mean(kind, plugin_kinds());
  fail(ErrorKind::config, "there is no plugin kind '", kind, "'", hint.empty() ? "" : "; ", hint,
       "\n  kinds: ", listed_kinds());
}

}  // namespace titan::core
