// Whole files in gzip's format (RFC 1952). Used by traces of the profiler.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// One member, at zlib's fastest level: traces shrink about tenfold at any level.
TITAN_API std::string to_gzip(std::string_view content);

/// Whether the bytes begin like a gzip file.
TITAN_API bool is_gzip(std::string_view bytes);

/// The content of all members. Throws a data Error that says whether the file is damaged or
/// truncated.
TITAN_API std::string from_gzip(std::string_view bytes);

}  // namespace titan
