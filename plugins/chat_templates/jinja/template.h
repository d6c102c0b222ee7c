// A compiled Jinja template, with the environment that transformers gives chat templates:
// trim_blocks, lstrip_blocks, loop controls, {% generation %}, the immutable sandbox. Used by the
// plugin.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/object.h"

namespace titan::jinja {

/// Immutable after construction; any thread may render.
///
/// It computes as Python does, refusals among it; what Python would compute beyond 64-bit integers
/// is refused. A template of a stranger can neither see nor do anything but compute a text, of
/// bounded length in bounded time.
class Template {
 public:
  /// Throws a TemplateError with its line for what Jinja2 refuses to compile.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;

  /// `now`: what strftime_now shows. Throws a TemplateError with its line.
  std::string render(std::vector<std::pair<std::string, Object>> variables, std::time_t now) const;

 private:
  struct Content;
  std::unique_ptr<const Content> content_;
};

}  // namespace titan::jinja
