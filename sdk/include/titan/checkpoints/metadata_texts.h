// The JSON texts in a safetensors file's __metadata__: which part of each tensor the file holds,
// and the hashes of its bytes. Used by writers and readers of distributed shards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// Keys of __metadata__. The first is PyTorch's: {"<tensor>": {"saved_offsets": [o0, ...]}, ...}.
inline constexpr const char* kShardingKey = "DCP_SHARDING_INFO";
/// Titan's: {"<tensor>": "<XXH3-128 of its bytes, 32 hexadecimal digits>", ...}.
inline constexpr const char* kTensorHashesKey = "TITAN_XXH3_128";
/// Titan's: the naming convention (parameter names and row order) of the file's tensors. Titan's
/// older files lack this key and are recognised by kTensorHashesKey.
inline constexpr const char* kConventionKey = "TITAN_CONVENTION";
inline constexpr const char* kOwnConvention = "titan";

/// {"<tensor>": {"saved_offsets": [o0, ...]}, ...}. Other members than saved_offsets are ignored,
/// as by PyTorch's reader. Throws a data Error naming `place` and the tensor.
TITAN_API std::map<std::string, std::vector<int64_t>> parse_sharding(std::string_view text,
                                                                     const std::string& place);
/// {"<tensor>": "<32 hexadecimal digits>", ...}
TITAN_API std::map<std::string, std::string> parse_tensor_hashes(std::string_view text,
                                                                 const std::string& place);

/// The texts for __metadata__ of a distributed shard.
TITAN_API std::string sharding_text(
    const std::map<std::string, std::vector<int64_t>>& saved_offsets);
TITAN_API std::string tensor_hashes_text(const std::map<std::string, std::string>& hashes);

/// The whole __metadata__ of a distributed shard.
TITAN_API std::map<std::string, std::string> shard_metadata(
    const std::map<std::string, std::vector<int64_t>>& saved_offsets,
    const std::map<std::string, std::string>& hashes);

}  // namespace titan
