// Truth, equality and order of values, as Python has them. Used by every part of the engine that
// computes.
#pragma once

#include "object.h"

namespace titan::jinja {

bool is_true(const Object& object);
bool equals(const Object& a, const Object& b);
/// `a < b`; raises TypeError's words for what has no order.
bool less(const Object& a, const Object& b);
bool is_same(const Object& a, const Object& b);  ///< `is`

}  // namespace titan::jinja
