#include <titan/checkpoints/safetensors.h>

#include <algorithm>
#include <iterator>

#include <titan/error.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

struct StoredType {
  std::string_view name;
  int bits;
};

/// In the order in which the reference writer places tensors.
constexpr StoredType kDtypes[] = {
    {"U64", 64},    {"I64", 64},        {"F64", 64},        {"C64", 64},    {"F32", 32},
    {"U32", 32},    {"I32", 32},        {"BF16", 16},       {"F16", 16},    {"U16", 16},
    {"I16", 16},    {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"I8", 8},          {"U8", 8},          {"F6_E3M2", 6}, {"F6_E2M3", 6},
    {"F4", 4},      {"BOOL", 8},
};

const StoredType* find_dtype(std::string_view name) {
  const auto found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                  [&](const StoredType& dtype) { return dtype.name == name; });
  return found == std::end(kDtypes) ? nullptr : found;
}

void append_numbers(std::string& out, const std::vector<int64_t>& numbers) {
  out += '[';
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  out += ']';
}

}  // namespace

int bits_of(std::string_view dtype) {
  const StoredType* found = find_dtype(dtype);
  return found ? found->bits : 0;
}

const TensorEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorEntry& entry) { return entry.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t num_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                  const std::string& place) {
  const int bits = bits_of(dtype);
  TITAN_CHECK(bits > 0, data, "unknown type ", in_quotes(dtype), " in ", place);
  int64_t product = 1;
  bool overflows = false;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    TITAN_CHECK(shape[dim] >= 0, data, "negative size ", shape[dim], " of dimension ", dim, " in ",
                place);
    overflows |= __builtin_mul_overflow(product, shape[dim], &product);
  }
  overflows |= __builtin_mul_overflow(product, bits, &product);
  TITAN_CHECK(!overflows, data, "the shape's product is beyond 64 bits in ", place);
  TITAN_CHECK(product % 8 == 0, data, "type ", dtype, " and shape take ", product,
              " bits, which is not a whole number of bytes, in ", place);
  return product / 8;
}

void lay_out(std::vector<TensorEntry>& tensors) {
  for (TensorEntry& entry : tensors)
    entry.end = num_bytes(entry.dtype, entry.shape, "tensor " + in_quotes(entry.name));
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    const StoredType* first = find_dtype(a.dtype);
    const StoredType* second = find_dtype(b.dtype);
    return first != second ? first < second : a.name < b.name;
  });
  int64_t position = 0;
  for (TensorEntry& entry : tensors) {
    entry.begin = position;
    TITAN_CHECK(!__builtin_add_overflow(position, entry.end, &position), data, "the tensors up to ",
                in_quotes(entry.name), " take more bytes than 64 bits count");
    entry.end = position;
  }
}

std::string header_bytes(const std::vector<TensorEntry>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::string text(8, '\0');
  text += '{';
  const char* separator = "";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [name, value] : metadata) {
      text += separator;
      append_json_string(text, name);
      text += ':';
      append_json_string(text, value);
      separator = ",";
    }
    text += '}';
  }
  for (const TensorEntry& entry : tensors) {
    text += separator;
    separator = ",";
    append_json_string(text, entry.name);
    text += ":{\"dtype\":\"" + entry.dtype + "\",\"shape\":";
    append_numbers(text, entry.shape);
    text += ",\"data_offsets\":";
    append_numbers(text, {entry.begin, entry.end});
    text += '}';
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');

  const uint64_t length = text.size() - 8;
  TITAN_CHECK(length <= kMaxHeaderBytes, data, "a header of ", length, " bytes for ",
              tensors.size(), " tensors; the format allows ", kMaxHeaderBytes,
              ": spread them over more files");
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(length >> (8 * i));
  return text;
}

SafetensorsHeader parse_header_text(std::string_view json, int64_t data_bytes,
                                    const std::string& place) {
  std::string bytes;
  for (size_t shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(json.size() >> shift & 0xff);
  bytes += json;
  return parse_header(bytes, static_cast<int64_t>(bytes.size()) + data_bytes, place);
}

}  // namespace titan
