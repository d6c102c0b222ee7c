// Encodes strings with the huggingface tokenizer and prints the ids: what the referee compares with
// the reference library, and what the speed is measured with.
//
//   tokenize_probe <assets folder> <strings file> [--parse-special]       one line of ids per
//   string tokenize_probe <assets folder> <strings file> --decode [...]          one line of
//   hexadecimal bytes
//                                                                         of decode(ids) per string
//   tokenize_probe <assets folder> <strings file> --bench <seconds>       prints MB per CPU second
//
// The strings file: for each string its length as 8 bytes, little-endian, then its bytes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <titan/error.h>

#include "plugins/tokenizers/huggingface/huggingface_tokenizer.h"

namespace {

using titan::huggingface::HuggingfaceOptions;
using titan::huggingface::HuggingfaceTokenizer;

// Time of this thread alone, so that a busy machine changes little.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  TITAN_CHECK(in.is_open(), io, "cannot open ", path);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

std::vector<std::string_view> cut(std::string_view content) {
  std::vector<std::string_view> strings;
  while (!content.empty()) {
    uint64_t length = 0;
    TITAN_CHECK(content.size() >= sizeof(length), data, "the strings file is cut short");
    std::memcpy(&length, content.data(), sizeof(length));
    content.remove_prefix(sizeof(length));
    TITAN_CHECK(length <= content.size(), data, "the strings file is cut short");
    strings.push_back(content.substr(0, length));
    content.remove_prefix(length);
  }
  return strings;
}

void print_lines(const HuggingfaceTokenizer& tokenizer,
                 const std::vector<std::string_view>& strings, bool decode) {
  constexpr char kHex[] = "0123456789abcdef";
  std::vector<int32_t> ids;
  std::string line;
  for (std::string_view text : strings) {
    ids.clear();
    line.clear();
    tokenizer.encode(text, ids);
    if (decode) {
      for (unsigned char byte : tokenizer.decode(ids)) {
        line += kHex[byte >> 4];
        line += kHex[byte & 15];
      }
    } else {
      for (int32_t id : ids) line.append(std::to_string(id)).append(1, ' ');
    }
    std::cout << line << '\n';
  }
}

void bench(const HuggingfaceTokenizer& tokenizer, const std::vector<std::string_view>& strings,
           double seconds) {
  std::vector<int32_t> ids;
  size_t num_bytes = 0;
  size_t num_ids = 0;
  const auto pass = [&] {
    for (std::string_view text : strings) {
      ids.clear();
      tokenizer.encode(text, ids);
      num_bytes += text.size();
      num_ids += ids.size();
    }
  };
  double start = cpu_seconds();
  pass();
  const double first = cpu_seconds() - start;
  std::cout << "first pass: " << static_cast<double>(num_bytes) / 1e6 / first << " MB/s\n";
  num_bytes = num_ids = 0;
  start = cpu_seconds();
  while (cpu_seconds() - start < seconds) pass();
  const double warm = cpu_seconds() - start;
  std::cout << "warm: " << static_cast<double>(num_bytes) / 1e6 / warm << " MB/s, "
            << static_cast<double>(num_ids) / 1e6 / warm << " Mtokens/s\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    TITAN_CHECK(argc >= 3, config, "usage: tokenize_probe <assets folder> <strings file> ",
                "[--parse-special] [--decode] [--bench <seconds>]");
    HuggingfaceOptions options;
    bool decode = false;
    double bench_seconds = 0;
    for (int i = 3; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--parse-special") {
        options.parse_special_tokens = true;
      } else if (argument == "--decode") {
        decode = true;
      } else if (argument == "--bench" && i + 1 < argc) {
        bench_seconds = std::atof(argv[++i]);
      } else {
        titan::fail(titan::ErrorKind::config, "unknown argument ", argument);
      }
    }
    const double start = cpu_seconds();
    const HuggingfaceTokenizer tokenizer(options, {.assets_path = argv[1]});
    const std::string content = read_file(argv[2]);
    const std::vector<std::string_view> strings = cut(content);
    if (bench_seconds > 0) {
      std::cout << "load: " << cpu_seconds() - start << " s, " << tokenizer.vocab_size()
                << " ids\n";
      bench(tokenizer, strings, bench_seconds);
    } else {
      print_lines(tokenizer, strings, decode);
    }
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
