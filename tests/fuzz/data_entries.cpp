// The entries of data_fuzz.
#include "tests/fuzz/data_entries.h"

#include <stdexcept>

#include <titan/error.h>

namespace titan::fuzz {
namespace {

template <const FileKind& kind>
Outcome run(const uint8_t* data, size_t size) {
  try {
    kind.read(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    return Outcome::read;
  } catch (const Error& e) {
    require(e.kind() == ErrorKind::data || e.kind() == ErrorKind::io, e.what());
    require(!e.message().empty() && e.message().size() < 4000, "a message of no use");
    return Outcome::refused;
  }
}

template <const FileKind& kind>
Entry entry() {
  return {kind.name, run<kind>, kind.corpus, kind.repair};
}

}  // namespace

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

std::vector<FileKind> file_kinds() {
  return {kTokenizerJson, kTiktoken,    kSentencepiece, kMegatronIndex,
          kJsonl,         kPipelineCsv, kChatTemplate};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {entry<kTokenizerJson>(), entry<kTiktoken>(),
                                         entry<kSentencepiece>(), entry<kMegatronIndex>(),
                                         entry<kJsonl>(),         entry<kPipelineCsv>(),
                                         entry<kChatTemplate>()};
  return all;
}

}  // namespace titan::fuzz
