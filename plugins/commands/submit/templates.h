// The templates of cluster/, as text. Used by plugin.cpp.
#pragma once

namespace titan::commands {

struct BuiltInTemplate {
  const char* name;
  const char* text;
};

extern const BuiltInTemplate kBuiltInTemplates[3];

}  // namespace titan::commands
