#include "page.h"

#include <titan/error.h>
#include <titan/shown_text.h>

#include "page_parts.h"

namespace titan::commands {
namespace {

/// Replaces the only `mark` in `page` by `text`.
void put(std::string& page, std::string_view mark, std::string_view text) {
  const size_t place = page.find(mark);
  TITAN_ASSERT(place != page.npos, "the page has no place for ", mark);
  page.replace(place, mark.size(), text);
}

/// Escapes "<" in JSON, which would begin a tag or a comment inside a script element.
std::string without_tags(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::string to_page(const Value& data) {
  std::string page(kPageHtml);
  put(page, "/*STYLE*/", kPageStyle);
  put(page, "/*SCRIPT*/", kPageScript);
  put(page, "{\"DATA\":0}", without_tags(printable_json(to_json(data))));
  return page;
}

}  // namespace titan::commands
