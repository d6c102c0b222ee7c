#include <titan/program/error_file.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <titan/program/environment.h>
#include <titan/program/utf8.h>
#include <titan/value.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& message, const std::string& context) {
  // JSON holds UTF-8 only; messages may quote any bytes
  const std::string text = as_utf8(message);
  const std::string place = context.empty() ? "" : "\n  at " + as_utf8(context);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // torchrun prints py_callstack and, if it is present, no message: so it holds both
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
    const auto path = Environment::of_process().get("TORCHELASTIC_ERROR_FILE");
    if (!path || is_written.test_and_set()) return;
    write(*path, message, context);
  } catch (const std::exception&) {
    // the message still reaches the user on standard error
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
    return "";  // another program may have written it
  }
}

}  // namespace titan
