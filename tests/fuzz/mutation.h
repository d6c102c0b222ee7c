// Changes to inputs of the fuzzer: of bits and bytes, and of JSON's numbers and pieces.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace titan::fuzz {

using Random = std::mt19937_64;

/// One to six changes of `input`; `others`: inputs to take pieces from.
std::string mutated(const std::string& input, const std::vector<std::string>& others,
                    Random& random);

}  // namespace titan::fuzz
