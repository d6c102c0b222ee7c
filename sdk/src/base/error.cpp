#include <titan/error.h>

namespace titan {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::config:
      return "config";
    case ErrorKind::plugin:
      return "plugin";
    case ErrorKind::data:
      return "data";
    case ErrorKind::io:
      return "io";
    case ErrorKind::distributed:
      return "distributed";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, std::string message)
    : std::runtime_error(message), kind_(kind), message_(std::move(message)), full_(message_) {}
Error::Error(const Error&) = default;
Error::~Error() = default;

Error& Error::with_context(const std::string& context) {
  full_ += "\n  " + context;
  return *this;
}

namespace detail {
void throw_assert(const char* expression, const char* file, int line, const std::string& message) {
  std::string text =
      concat("internal error: '", expression, "' does not hold at ", file, ":", line);
  if (!message.empty()) text += ": " + message;
  throw Error(ErrorKind::internal, text + "; please report this");
}
}  // namespace detail

}  // namespace titan
