// Builds texts from the fields of a JSON document. Used by the tasks of titan evaluate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/value.h>

namespace titan::evaluation {

/// A text such as "Question: {{question}}\nAnswer:", in the part of Jinja2's language that names
/// fields: `{{field}}`, `{{field.inner}}`, `{{list[0]}}`. All other expressions are errors.
class TextTemplate {
 public:
  /// Throws a config Error that quotes an expression which is not a path, or a `{%`.
  explicit TextTemplate(std::string_view text);

  /// The text with the fields of `document`: strings verbatim, numbers and booleans as Jinja2
  /// writes them. Throws a data Error naming a field that is missing or is a list, a map or null.
  std::string apply(const Value& document) const;
  /// The field's value when the text is a single expression, "{{choices.text}}"; else null. Throws
  /// a data Error when the field is missing.
  const Value* only_field(const Value& document) const;

 private:
  struct Step {
    std::string name;  // name of a map's member
    size_t index = 0;  // index of a list's item, when there is no name
  };
  struct Part {
    std::string text;  // literal, or the path as written
    std::vector<Step> path;
  };
  static std::vector<Step> parse_path(std::string_view text);
  static const Value& resolve(const Part& part, const Value& document);

  std::vector<Part> parts_;
};

}  // namespace titan::evaluation
