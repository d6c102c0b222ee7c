// See wandb_file.h.
#include "wandb_file.h"

#include <algorithm>

#include <boost/crc.hpp>

namespace titan::loggers {
namespace {

constexpr size_t kBlock = 32768, kHeader = 7;
constexpr std::string_view kFileStart("\x3aW&B\xe1\xbe\x00", 7);  // name, magic 0xBEE1, version 0

void append_chunk(std::string& out, char type, std::string_view data) {
  boost::crc_32_type crc;
  crc.process_byte(static_cast<unsigned char>(type));
  crc.process_bytes(data.data(), data.size());
  const uint32_t sum = crc.checksum();
  for (int i = 0; i < 4; ++i) out += static_cast<char>(sum >> (8 * i));
  for (int i = 0; i < 2; ++i) out += static_cast<char>(data.size() >> (8 * i));
  out += type;
  out += data;
}

}  // namespace

std::string frame_wandb_record(std::string_view payload, uint64_t offset) {
  constexpr char kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4;
  std::string out;
  bool is_first = true;
  do {
    size_t left = kBlock - (offset + out.size()) % kBlock;
    if (left < kHeader) {
      out.append(left, '\0');
      left = kBlock;
    }
    const std::string_view data = payload.substr(0, std::min(payload.size(), left - kHeader));
    payload.remove_prefix(data.size());
    const bool is_last = payload.empty();
    append_chunk(out, is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle), data);
    is_first = false;
  } while (!payload.empty());
  return out;
}

WandbFile::WandbFile(const std::filesystem::path& path)
    : output_(path, OutputFile::Mode::create_new) {
  output_.append(kFileStart);
  size_ = kFileStart.size();
}

void WandbFile::write(std::string_view record) {
  const std::string bytes = frame_wandb_record(record, size_);
  output_.append(bytes);
  size_ += bytes.size();
}

}  // namespace titan::loggers
