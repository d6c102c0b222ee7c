// Whole files in gzip's format (RFC 1952). Used by traces of the profiler.
#pragma once

#include <string>
#include <string_view>

namespace titan::core {

/// One member, at zlib's fastest level: traces shrink about tenfold at any.
std::string to_gzip(std::string_view content);

/// Whether the bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The content of all members. Throws a data Error that says what is wrong: damaged, cut short.
std::string from_gzip(std::string_view bytes);

}  // namespace titan::core
