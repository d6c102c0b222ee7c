#include "core/runtime/error_file.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <titan/value.h>

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// Bytes of the well-formed UTF-8 sequence that starts at `at`, 0 when there is none.
size_t sequence_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_no_character ? 0 : length;
}

/// JSON holds UTF-8 only; messages may quote any bytes.
std::string as_utf8(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    result += length ? text.substr(i, length) : "?";
    i += length ? length : 1;
  }
  return result;
}

void write(const fs::path& path, const std::string& message, const std::string& context) {
  const std::string text = as_utf8(message);
  const std::string place = context.empty() ? "" : "\n  at " + as_utf8(context);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // torchrun prints py_callstack and, where there is one, no message: so it holds both
  const Value extra =
      Value::map({{"py_callstack", text + place}, {"timestamp", std::to_string(seconds)}});
  const Value content =
      Value::map({{"message", Value::map({{"message", text}, {"extraInfo", extra}})}});

  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << to_json(content) << "\n";
  out.close();
  if (out) fs::rename(temporary, path, error);
  if (!out || error) fs::remove(temporary, error);
}

}  // namespace

void write_error_file(const std::string& message, const std::string& context) {
  static std::atomic_flag is_written;
  try {
    const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
    if (!path || !*path || is_written.test_and_set()) return;
    write(path, message, context);
  } catch (const std::exception&) {
    // the message reaches the user on standard error all the same
  }
}

std::string read_error_file(const std::string& path) {
  try {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.empty()) return "";
    const Value content = parse_json(text);
    const Value& message = content.at("message");
    return message.is_string() ? message.as_string() : message.at("message").as_string();
  } catch (const std::exception&) {
    return "";  // another program may write there what it likes
  }
}

}  // namespace titan::core
