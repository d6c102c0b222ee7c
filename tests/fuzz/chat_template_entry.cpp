// Chat templates: a template that compiles must render a conversation, or refuse it, in bounded
// time.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <titan/error.h>

#include "plugins/chat_templates/jinja/template.h"
#include "tests/fuzz/data_entries.h"

namespace titan::fuzz {
namespace {

using jinja::Object;

Object message(const char* role, const char* content) {
  auto result = std::make_shared<jinja::Mapping>();
  result->set("role", role);
  result->set("content", content);
  return result;
}

void read_chat_template(std::string_view content, const std::string& name) {
  const std::vector<std::pair<std::string, Object>> variables = {
      {"messages", Object::sequence({message("system", "S"), message("user", " h\xC3\xA9 \n"),
                                     message("assistant", "")})},
      {"numbers", Object::sequence({int64_t{1}, -2.5, true, {}})},
      {"bos_token", "<s>"},
      {"add_generation_prompt", true}};
  try {
    const jinja::Template program(content);
    const std::string text = program.render(variables, 0);
    require(program.render(variables, 0) == text, "the same conversation has another text");
  } catch (const jinja::TemplateError& error) {
    fail(ErrorKind::data, name, ":", error.line, ": ", error.what());
  }
}

std::vector<std::string> chat_template_corpus() {
  return {
      "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m.content | trim }}\n"
      "{%- if not loop.last %},{% elif m.role is defined %}{{ loop.index0 }}{% endif %}\n"
      "{% endfor %}{% if add_generation_prompt %}{{ '[/INST]' }}{%- endif -%}",
      "{%- macro item(x, depth=0) -%}{{ x | tojson(indent=2) }}{{ varargs }}{% endmacro %}\n"
      "{%- set ns = namespace(n=0, last=none) -%}{# a comment #}{% raw %}{{ }}{% endraw %}\n"
      "{% for n in numbers if (n is number) recursive %}{% set ns.n = ns.n + n %}{{ item(n, 1) }}\n"
      "{%- continue %}{% endfor %}{{ ns.n }}{{ messages[::-1][0:2] | map(attribute='role') | join "
      "}}",
      "{% set x %}{{ '%5.2f|%-4s' % (1.5, 'a') ~ '{:>8}'.format('b') }}{% endset %}{{ x | upper "
      "}}\n"
      "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ 7 // 2 ** 3 % 5 "
      "}}\n"
      "{{ {'a': [1, (2,)], 'b': 'c'}.items() | list | sort }}{{ 'a b'.split() | first | title }}\n"
      "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(y) m() %}{{ y }}{% endcall %}{{ 'yes' "
      "if 1 < 2 <= 3 and 'a' in 'abc' else 'no' }}",
      "{{ numbers | select | batch(2, 'x') | list }}{% generation %}{{ messages[-1].content }}"
      "{% endgeneration %}{% with a = 1, b = [] %}{{ b or a }}{% endwith %}{% filter indent(2, "
      "true) %}"
      "a\nb{% endfilter %}{{ 'caf\xC3\xA9\xE2\x80\xA8'[1:-1] | reverse }}"};
}

}  // namespace

const FileKind kChatTemplate = {"chat_template", read_chat_template, chat_template_corpus, nullptr};

}  // namespace titan::fuzz
