#include <titan/files/pickle_writer.h>

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <titan/error.h>

namespace titan {
namespace {

// Opcodes of Python's Lib/pickletools.py that a writer needs.
namespace code {
constexpr char kProtocol = '\x80', kStop = '.', kNone = 'N', kNewTrue = '\x88', kNewFalse = '\x89',
               kInt1 = 'K', kInt4 = 'J', kLong1 = '\x8a', kDouble = 'G', kText4 = 'X', kPut4 = 'r',
               kGet4 = 'j';
}  // namespace code

template <class Number>
void put_little_endian(std::string& out, Number number) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

}  // namespace

PickleWriter::PickleWriter() {
  out_ += {code::kProtocol, 2};
}

void PickleWriter::put_null() {
  out_ += code::kNone;
}

void PickleWriter::put(bool value) {
  out_ += value ? code::kNewTrue : code::kNewFalse;
}

void PickleWriter::put(int64_t number) {
  if (number >= 0 && number < 256) {
    out_ += code::kInt1;
    put_little_endian(out_, static_cast<uint8_t>(number));
  } else if (number == static_cast<int32_t>(number)) {
    out_ += code::kInt4;
    put_little_endian(out_, static_cast<int32_t>(number));
  } else {
    out_ += code::kLong1;
    out_ += char{8};
    put_little_endian(out_, number);
  }
}

void PickleWriter::put(double number) {
  out_ += code::kDouble;
  const auto bits = std::bit_cast<uint64_t>(number);
  for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
}

void PickleWriter::put(std::string_view text) {
  TITAN_ASSERT(text.size() <= std::numeric_limits<uint32_t>::max(), text.size());
  out_ += code::kText4;
  put_little_endian(out_, static_cast<uint32_t>(text.size()));
  out_ += text;
}

uint32_t PickleWriter::remember() {
  out_ += code::kPut4;
  put_little_endian(out_, num_remembered_);
  return num_remembered_++;
}

void PickleWriter::put_again(uint32_t number) {
  out_ += code::kGet4;
  put_little_endian(out_, number);
}

std::string PickleWriter::finish() {
  out_ += code::kStop;
  return std::move(out_);
}

}  // namespace titan
