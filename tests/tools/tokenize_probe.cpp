// Encodes strings with the tokenizer plugins `huggingface`, `tiktoken` and `sentencepiece` and
// prints the ids. Referees compare them with other programs. Also measures the speed.
//
//   tokenize_probe <assets folder> <strings file>                    one line of ids per string
//   tokenize_probe <assets folder> <strings file> --decode           one line of hexadecimal bytes
//                                                                    of decode(ids) per string
//   tokenize_probe <assets folder> <ids file> --decode-ids           the same of each line of ids
//   tokenize_probe <assets folder> <strings file> --bench <seconds>  prints MB per CPU second
//
// Further arguments: --parse-special; --facts (one line: vocabulary size, BOS, EOS, pad); --threads
// <number> for --bench; --sentencepiece for that plugin; --tiktoken for that one, with --pattern
// <regex>, --special <item>..., --bos <token> and --eos <token>.
//
// The strings file: for each string its length as 8 bytes, little-endian, then its bytes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <titan/error.h>

#include "plugins/tokenizers/huggingface/huggingface_tokenizer.h"
#include "plugins/tokenizers/sentencepiece/sentencepiece_tokenizer.h"
#include "plugins/tokenizers/tiktoken/tiktoken_tokenizer.h"
#include "tests/tools/strings_file.h"

namespace {

using titan::Tokenizer;
using titan::huggingface::HuggingfaceOptions;
using titan::huggingface::HuggingfaceTokenizer;
using titan::tiktoken::TiktokenOptions;
using titan::tiktoken::TiktokenTokenizer;

using titan::probe::cpu_seconds;
using titan::probe::cut;
using titan::probe::read_file;

struct Arguments {
  std::string folder;
  std::string strings;
  HuggingfaceOptions huggingface;
  TiktokenOptions tiktoken;
  bool is_tiktoken = false;
  bool is_sentencepiece = false;
  bool decode = false;
  bool decode_ids = false;
  bool facts = false;
  double bench_seconds = 0;
  int num_threads = 1;
};

Arguments parse(int argc, char** argv) {
  TITAN_CHECK(argc >= 3, config, "usage: tokenize_probe <assets folder> <strings file> ...");
  Arguments result;
  result.folder = argv[1];
  result.strings = argv[2];
  bool has_special = false;
  for (int i = 3; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&] {
      TITAN_CHECK(i + 1 < argc, config, argument, " needs a value");
      return std::string(argv[++i]);
    };
    if (argument == "--parse-special") {
      result.huggingface.parse_special_tokens = result.tiktoken.parse_special_tokens = true;
    } else if (argument == "--decode") {
      result.decode = true;
    } else if (argument == "--decode-ids") {
      result.decode_ids = true;
    } else if (argument == "--facts") {
      result.facts = true;
    } else if (argument == "--bench") {
      result.bench_seconds = std::atof(value().c_str());
    } else if (argument == "--threads") {
      result.num_threads = std::atoi(value().c_str());
    } else if (argument == "--sentencepiece") {
      result.is_sentencepiece = true;
    } else if (argument == "--tiktoken") {
      result.is_tiktoken = true;
    } else if (argument == "--pattern") {
      result.tiktoken.pattern = value();
    } else if (argument == "--special") {
      if (!has_special) result.tiktoken.special_tokens.clear();
      has_special = true;
      result.tiktoken.special_tokens.push_back(value());
    } else if (argument == "--bos") {
      result.tiktoken.bos = value();
    } else if (argument == "--eos") {
      result.tiktoken.eos = value();
    } else {
      titan::fail(titan::ErrorKind::config, "unknown argument ", argument);
    }
  }
  return result;
}

std::unique_ptr<const Tokenizer> make_tokenizer(const Arguments& arguments) {
  titan::TokenizerContext context{.assets_path = arguments.folder};
  if (arguments.is_tiktoken) {
    return std::make_unique<TiktokenTokenizer>(arguments.tiktoken, context);
  }
  if (arguments.is_sentencepiece) {
    return std::make_unique<titan::sentencepiece::SentencepieceTokenizer>(
        titan::sentencepiece::SentencepieceOptions{}, context);
  }
  return std::make_unique<HuggingfaceTokenizer>(arguments.huggingface, context);
}

void print_facts(const Tokenizer& tokenizer) {
  const titan::SpecialTokens special = tokenizer.special_tokens();
  std::cout << tokenizer.vocab_size() << ' ' << special.bos.value_or(-1) << ' '
            << special.eos.value_or(-1) << ' ' << special.pad.value_or(-1) << '\n';
}

void append_hex(std::string& line, std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  for (unsigned char byte : bytes) {
    line += kHex[byte >> 4];
    line += kHex[byte & 15];
  }
}

void print_texts(const Tokenizer& tokenizer, const std::string& content) {
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    std::vector<int32_t> ids;
    for (int32_t id; numbers >> id;) ids.push_back(id);
    std::string text;
    append_hex(text, tokenizer.decode(ids));
    std::cout << text << '\n';
  }
}

void print_lines(const Tokenizer& tokenizer, const std::vector<std::string_view>& strings,
                 bool decode) {
  std::vector<int32_t> ids;
  std::string line;
  for (std::string_view text : strings) {
    ids.clear();
    line.clear();
    tokenizer.encode(text, ids);
    if (decode) {
      append_hex(line, tokenizer.decode(ids));
    } else {
      for (int32_t id : ids) line.append(std::to_string(id)).append(1, ' ');
    }
    std::cout << line << '\n';
  }
}

void bench(const Tokenizer& tokenizer, const std::vector<std::string_view>& strings,
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

// Each thread makes its own passes over all strings; the rate is that of all threads together, by
// the wall clock.
void bench_threads(const Tokenizer& tokenizer, const std::vector<std::string_view>& strings,
                   const Arguments& arguments) {
  size_t num_bytes = 0;
  for (std::string_view text : strings) num_bytes += text.size();
  const int passes = std::max(
      1, static_cast<int>(arguments.bench_seconds * 40e6 / static_cast<double>(num_bytes)));
  const auto run = [&] {
    std::vector<int32_t> ids;
    for (int pass = 0; pass < passes; ++pass) {
      for (std::string_view text : strings) {
        ids.clear();
        tokenizer.encode(text, ids);
      }
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < arguments.num_threads; ++i) threads.emplace_back(run);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << arguments.num_threads << " threads: "
            << static_cast<double>(num_bytes) * passes * arguments.num_threads / 1e6 / took.count()
            << " MB/s\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    const double start = cpu_seconds();
    const std::unique_ptr<const Tokenizer> tokenizer = make_tokenizer(arguments);
    const double load = cpu_seconds() - start;
    const std::string content = read_file(arguments.strings.c_str());
    if (arguments.decode_ids) {
      print_texts(*tokenizer, content);
      return 0;
    }
    const std::vector<std::string_view> strings = cut(content);
    if (arguments.facts) {
      print_facts(*tokenizer);
    } else if (arguments.bench_seconds > 0 && arguments.num_threads > 1) {
      bench_threads(*tokenizer, strings, arguments);
    } else if (arguments.bench_seconds > 0) {
      std::cout << "load: " << load << " s, " << tokenizer->vocab_size() << " ids\n";
      bench(*tokenizer, strings, arguments.bench_seconds);
    } else {
      print_lines(*tokenizer, strings, arguments.decode);
    }
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
