// The JSON texts inside a safetensors file's __metadata__ that say which part of a tensor the file
// holds and what its bytes hash to. Used by tensor_index and by verify.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace titan::core {

/// {"<tensor>": {"saved_offsets": [o0, ...]}, ...}. Members beside saved_offsets are skipped, as
/// PyTorch's reader does. Throws a data Error naming `place` and the tensor.
std::map<std::string, std::vector<int64_t>> parse_sharding(std::string_view text,
                                                           const std::string& place);
/// {"<tensor>": "<32 hexadecimal digits>", ...}
std::map<std::string, std::string> parse_tensor_hashes(std::string_view text,
                                                       const std::string& place);

/// 32 hexadecimal digits in lower case, as Hasher prints them.
bool is_hash(std::string_view text);

}  // namespace titan::core
