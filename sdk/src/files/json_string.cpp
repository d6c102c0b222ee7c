#include <titan/files/json_string.h>

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan {

void append_json_string(std::string& out, const std::string& text, Escapes escapes) {
  try {
    out += nlohmann::json(text).dump(-1, ' ', escapes == Escapes::ascii);
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::data, "cannot write ", in_quotes(text), " as JSON: it is not UTF-8");
  }
}

}  // namespace titan
