// Texts made of the fields of a JSON document. Used by the tasks of titan evaluate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/value.h>

namespace titan::evaluation {

/// "Question: {{question}}\nAnswer:", the part of Jinja2's language that names fields: `{{field}}`,
/// `{{field.inner}}`, `{{list[0]}}`. Everything else between braces is refused.
class TextTemplate {
 public:
  /// Throws a config Error that quotes what is between `{{` and `}}`, or `{%`, when it is no path.
  explicit TextTemplate(std::string_view text);

  /// The text with the fields of `document`: strings as they are, numbers and booleans as Jinja2
  /// writes them. Throws a data Error naming a field that is missing or is a list, a map or null.
  std::string apply(const Value& document) const;
  /// The field itself where the text is one and nothing else, "{{choices.text}}"; else null. Throws
  /// a data Error when it is missing.
  const Value* only_field(const Value& document) const;

 private:
  struct Step {
    std::string name;  // of a map's member
    size_t index = 0;  // of a list's item, where there is no name
  };
  struct Part {
    std::string text;  // literal, or the path as it was written
    std::vector<Step> path;
  };
  static std::vector<Step> parse_path(std::string_view text);
  static const Value& resolve(const Part& part, const Value& document);

  std::vector<Part> parts_;
};

}  // namespace titan::evaluation
