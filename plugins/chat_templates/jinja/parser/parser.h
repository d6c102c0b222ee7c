// A template's text to its statements. Used by Template.
#pragma once

#include <string_view>

#include "../engine/syntax.h"

namespace titan::jinja {

/// Throws a TemplateError with its line for what Jinja2 refuses to compile, and for inheritance and
/// inclusion, which chat templates have no use for.
Statements parse(std::string_view source);

}  // namespace titan::jinja
