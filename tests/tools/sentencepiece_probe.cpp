// Encodes and decodes with the sentencepiece tokenizer and prints what comes out: what the referee
// compares with the reference library, and what the speed is measured with.
//
//   sentencepiece_probe <model> info                   vocab_size, then bos, eos, pad (-1: none)
//   sentencepiece_probe <model> encode <strings file>  one line of ids per string
//   sentencepiece_probe <model> decode <ids file>      one line of hexadecimal bytes per line of
//   ids sentencepiece_probe <model> bench <strings file> <seconds>         prints MB per CPU second
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
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <titan/error.h>

#include "plugins/tokenizers/sentencepiece/sentencepiece_tokenizer.h"
#include "tests/tools/strings_file.h"

namespace {

using titan::sentencepiece::SentencepieceTokenizer;

using titan::probe::cpu_seconds;
using titan::probe::cut;
using titan::probe::read_file;

void print_info(const SentencepieceTokenizer& tokenizer) {
  const titan::SpecialTokens special = tokenizer.special_tokens();
  std::cout << tokenizer.vocab_size() << ' ' << special.bos.value_or(-1) << ' '
            << special.eos.value_or(-1) << ' ' << special.pad.value_or(-1) << '\n';
}

void print_ids(const SentencepieceTokenizer& tokenizer, const std::string& content) {
  std::vector<int32_t> ids;
  std::string line;
  for (std::string_view text : cut(content)) {
    ids.clear();
    line.clear();
    tokenizer.encode(text, ids);
    for (int32_t id : ids) line.append(std::to_string(id)).append(1, ' ');
    std::cout << line << '\n';
  }
}

void print_texts(const SentencepieceTokenizer& tokenizer, const std::string& content) {
  constexpr char kHex[] = "0123456789abcdef";
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    std::vector<int32_t> ids;
    for (int32_t id; numbers >> id;) ids.push_back(id);
    std::string text;
    for (unsigned char byte : tokenizer.decode(ids)) {
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    }
    std::cout << text << '\n';
  }
}

void bench(const SentencepieceTokenizer& tokenizer, const std::string& content, double seconds) {
  const std::vector<std::string_view> strings = cut(content);
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
    const std::string_view command = argc > 2 ? argv[2] : "";
    TITAN_CHECK(argc == (command == "info"    ? 3
                         : command == "bench" ? 5
                                              : 4),
                config,
                "usage: sentencepiece_probe <model> info | encode <strings file> | decode <ids "
                "file> | bench <strings file> <seconds>");
    const SentencepieceTokenizer tokenizer({}, titan::TokenizerContext{.assets_path = argv[1]});
    if (command == "info")
      print_info(tokenizer);
    else if (command == "encode")
      print_ids(tokenizer, read_file(argv[3]));
    else if (command == "decode")
      print_texts(tokenizer, read_file(argv[3]));
    else if (command == "bench")
      bench(tokenizer, read_file(argv[3]), std::atof(argv[4]));
    else
      titan::fail(titan::ErrorKind::config, "unknown command ", command);
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
}
