// See token_type.h.
#include "plugins/datasets/tokens/token_type.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace titan::datasets {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

/// Calls `use` with a value of the C++ type that `type` names.
template <class Use>
auto with_type(TokenType type, Use use) {
  switch (type) {
    case TokenType::uint8:
      return use(uint8_t{});
    case TokenType::int8:
      return use(int8_t{});
    case TokenType::int16:
      return use(int16_t{});
    case TokenType::uint16:
      return use(uint16_t{});
    case TokenType::int32:
      return use(int32_t{});
    case TokenType::uint32:
      return use(uint32_t{});
    case TokenType::int64:
      break;
  }
  return use(int64_t{});
}

template <class T>
T load_number(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T>
bool fits(T id) {
  if constexpr (sizeof(T) < sizeof(int32_t) && std::is_unsigned_v<T>) {
    return true;
  } else if constexpr (std::is_unsigned_v<T>) {
    return id <= uint32_t{std::numeric_limits<int32_t>::max()};
  } else {
    return id >= 0 && int64_t{id} <= std::numeric_limits<int32_t>::max();
  }
}

}  // namespace

size_t width_of(TokenType type) {
  return with_type(type, [](auto id) { return sizeof(id); });
}

const char* name_of(TokenType type) {
  constexpr const char* kNames[] = {"uint8", "int8", "int16", "uint16", "int32", "uint32", "int64"};
  return kNames[static_cast<size_t>(type)];
}

size_t decode_ids(TokenType type, const char* bytes, size_t count, int32_t* ids) {
  return with_type(type, [&](auto example) {
    using T = decltype(example);
    bool all_fit = true;
    for (size_t i = 0; i < count; ++i) {
      const T id = load_number<T>(bytes + i * sizeof(T));
      all_fit &= fits(id);
      ids[i] = static_cast<int32_t>(id);
    }
    if (all_fit) return count;
    size_t i = 0;
    while (fits(load_number<T>(bytes + i * sizeof(T)))) ++i;
    return i;
  });
}

int64_t decode_id(TokenType type, const char* bytes) {
  return with_type(type,
                   [&](auto id) { return static_cast<int64_t>(load_number<decltype(id)>(bytes)); });
}

}  // namespace titan::datasets
