// Which tests say nothing new once another has failed. They are skipped then, so that one fault
// shows as one failure.
#pragma once

#include <set>
#include <string>

#include "test.h"

namespace titan::conformance {

/// A test in `failed`, names of failed tests of the same subject, on which `test` builds; empty:
/// none.
std::string failed_basis(const Test& test, const std::set<std::string>& failed);

}  // namespace titan::conformance
