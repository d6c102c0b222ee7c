// See event_file.h.
#include "event_file.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <unistd.h>

#include <boost/crc.hpp>

#include <titan/error.h>
#include <titan/program/host.h>

#include "../common/run_files.h"
#include "event_proto.h"

namespace titan::loggers {
namespace {

constexpr std::string_view kNameStart = "events.out.tfevents.";

void append_little_endian(std::string& out, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
}

constexpr int64_t kMaxSeconds = 9'999'999'999;  // larger numbers would not sort as text

/// The largest number of seconds in the names of event files in `folder`; 0 = none.
int64_t latest_seconds(const std::filesystem::path& folder) {
  int64_t latest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kNameStart)) continue;
    const int64_t seconds = std::strtoll(name.c_str() + kNameStart.size(), nullptr, 10);
    if (seconds < kMaxSeconds) latest = std::max(latest, seconds);
  }
  return latest;
}

std::filesystem::path new_path(const std::filesystem::path& folder) {
  const auto now = static_cast<int64_t>(wall_time_now());
  std::string seconds = std::to_string(std::max(now, latest_seconds(folder) + 1));
  seconds.insert(0, 10 - std::min<size_t>(10, seconds.size()), '0');
  const std::string host = host_name();
  return folder / (std::string(kNameStart) + seconds + "." + (host.empty() ? "localhost" : host) +
                   "." + std::to_string(::getpid()) + ".0");
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t sum = crc.checksum();
  return (sum >> 15 | sum << 17) + 0xA282EAD8U;
}

std::string frame_record(std::string_view payload) {
  std::string record;
  record.reserve(payload.size() + 16);
  append_little_endian(record, payload.size(), 8);
  append_little_endian(record, masked_crc32c(record), 4);
  record += payload;
  append_little_endian(record, masked_crc32c(payload), 4);
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder, std::string_view suffix) {
  try {
    std::filesystem::create_directories(folder);
    path_ = new_path(folder);
    path_ += suffix;
  } catch (const std::filesystem::filesystem_error& error) {
    fail(ErrorKind::io, "cannot create TensorBoard folder '", folder.string(),
         "': ", error.code().message(), " (errno ", error.code().value(), ")");
  }
  output_ = OutputFile(path_, OutputFile::Mode::create_new);
  write(version_event(wall_time_now()));
}

}  // namespace titan::loggers
