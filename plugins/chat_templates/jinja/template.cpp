#include "template.h"

#include "engine/renderer.h"
#include "parser/parser.h"

namespace titan::jinja {

struct Template::Content {
  Statements statements;
};

Template::Template(std::string_view source)
    : content_(std::make_unique<const Content>(Content{parse(source)})) {}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;

std::string Template::render(std::vector<std::pair<std::string, Object>> variables,
                             std::time_t now) const {
  Runtime runtime(now);
  Renderer renderer(runtime);
  const auto outer = std::make_shared<Scope>();
  outer->names = std::move(variables);
  const auto own = std::make_shared<Scope>();
  own->outer = outer;
  std::string text;
  renderer.run(content_->statements, own, text);
  return text;
}

}  // namespace titan::jinja
