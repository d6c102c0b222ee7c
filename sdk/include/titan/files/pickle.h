// Values in Python's pickle format, which PyTorch's tools exchange: plain data only, no objects, so
// that no code is ever executed. Used by flight records.
#pragma once

#include <string>
#include <string_view>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// Protocol 2, as `pickle.dumps` writes dictionaries, lists, strings, numbers, booleans and None.
TITAN_API std::string to_pickle(const Value& value);

/// The result of `pickle.loads` for plain data in protocols 0 < p <= 5; tuples become lists, keys
/// of dictionaries become texts. Throws a data Error with the offset for anything but plain data,
/// truncated input, numbers beyond 64 bits and nesting deeper than 100 levels.
TITAN_API Value parse_pickle(std::string_view bytes);

}  // namespace titan
