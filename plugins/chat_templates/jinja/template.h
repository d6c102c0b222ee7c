// A compiled Jinja template, with transformers' environment for chat templates: trim_blocks,
// lstrip_blocks, loop controls, {% generation %}, the immutable sandbox. Used by the plugin.
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
/// Results and errors are those of Python, except that integers beyond 64 bits are an error. An
/// untrusted template can only compute a text, of bounded length in bounded time.
class Template {
 public:
  /// Throws a TemplateError with its line for errors of Jinja2's compiler.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;

  /// `now`: the time that strftime_now formats. Throws a TemplateError with its line.
  std::string render(std::vector<std::pair<std::string, Object>> variables, std::time_t now) const;

 private:
  struct Content;
  std::unique_ptr<const Content> content_;
};

}  // namespace titan::jinja
