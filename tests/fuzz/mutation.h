// Mutations of the fuzzer's inputs: bits, bytes, and numbers and pieces of JSON.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace titan::fuzz {

using Random = std::mt19937_64;

/// Makes one to six changes to `input`. `others`: inputs to take pieces from.
std::string mutated(const std::string& input, const std::vector<std::string>& others,
                    Random& random);

}  // namespace titan::fuzz
