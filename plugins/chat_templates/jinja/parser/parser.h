// Parses a template's text into statements. Used by Template.
#pragma once

#include <string_view>

#include "../engine/syntax.h"

namespace titan::jinja {

/// Throws a TemplateError with its line for errors of Jinja2's compiler, and for inheritance and
/// inclusion, which chat templates do not use.
Statements parse(std::string_view source);

}  // namespace titan::jinja
