// Truth, equality and order of values, as in Python. Used by the whole engine.
#pragma once

#include "object.h"

namespace titan::jinja {

bool is_true(const Object& object);
bool equals(const Object& a, const Object& b);
/// `a < b`; raises Python's TypeError message for values without an order.
bool less(const Object& a, const Object& b);
bool is_same(const Object& a, const Object& b);  ///< `is`

}  // namespace titan::jinja
