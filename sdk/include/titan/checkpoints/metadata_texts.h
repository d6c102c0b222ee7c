// The JSON texts inside a safetensors file's __metadata__ that say which part of a tensor the file
// holds and what its bytes hash to. Used by whoever writes and reads distributed shards.
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
/// Titan's: whose names and orders of rows the file's tensors have. Files that Titan wrote before
/// there was this key are known by the hashes.
inline constexpr const char* kConventionKey = "TITAN_CONVENTION";
inline constexpr const char* kOwnConvention = "titan";

/// {"<tensor>": {"saved_offsets": [o0, ...]}, ...}. Members beside saved_offsets are skipped, as
/// PyTorch's reader does. Throws a data Error naming `place` and the tensor.
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
