// Titan's exception type, with context added on the way up. Used everywhere. No torch.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <titan/export.h>

namespace titan {

/// Kind of an error. Determines the exit code of the program.
enum class ErrorKind {
  config,       ///< the user's configuration or command line; exit code 2
  plugin,       ///< a plugin is missing, incompatible or broke its contract; exit code 3
  data,         ///< a data set, tokenizer or checkpoint has invalid content
  io,           ///< a file or folder could not be read or written
  distributed,  ///< ranks disagree, a collective failed or timed out
  internal,     ///< a bug in Titan
};

/// "config", "plugin", ...
TITAN_API const char* to_string(ErrorKind kind);

/// The one exception type of Titan.
///
/// Message style: what failed, the value, the limit, the place, the next action; lower case, no
/// full stop. Callers add context with `with_context`, innermost first: "while reading
/// corpus.jsonl".
class TITAN_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message);
  Error(const Error&);
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }
  /// The message alone, without context.
  const std::string& message() const noexcept { return message_; }
  /// The message and every context line, as shown to the user.
  const char* what() const noexcept override { return full_.c_str(); }

  /// Adds one line of context. Use in a catch block: `e.with_context("while ..."); throw;`
  Error& with_context(const std::string& context);

 private:
  ErrorKind kind_;
  std::string message_;
  std::string full_;
};

namespace detail {
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}
[[noreturn]] TITAN_API void throw_assert(const char* expression, const char* file, int line,
                                         const std::string& message);
}  // namespace detail

/// Throws Error of `kind`; the message is the parts streamed one after the other.
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, detail::concat(parts...));
}

}  // namespace titan

/// For errors that users or data can cause: `TITAN_CHECK(seq_len > 0, config, "seq_len must be > 0,
/// got ", seq_len)`.
#define TITAN_CHECK(condition, kind, ...)                                   \
  do {                                                                      \
    if (!(condition)) ::titan::fail(::titan::ErrorKind::kind, __VA_ARGS__); \
  } while (false)

/// For bugs in Titan: a false condition is never the user's fault.
#define TITAN_ASSERT(condition, ...)                                                         \
  do {                                                                                       \
    if (!(condition))                                                                        \
      ::titan::detail::throw_assert(#condition, __FILE__, __LINE__,                          \
                                    ::titan::detail::concat("" __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
