// Values in Python's pickle format, which tools of PyTorch exchange: plain data only, no objects,
// so nothing is ever run. Used by flight records.
#pragma once

#include <string>
#include <string_view>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// Protocol 2, as `pickle.dumps` writes dictionaries, lists, strings, numbers, booleans and None.
TITAN_API std::string to_pickle(const Value& value);

/// What `pickle.loads` gives for protocols 0 < p <= 5 of plain data; tuples become lists and keys
/// of dictionaries texts. Throws a data Error with the offset of what is not plain data, is cut
/// short, does not fit into 64 bits or is nested deeper than 100 levels.
TITAN_API Value parse_pickle(std::string_view bytes);

}  // namespace titan
