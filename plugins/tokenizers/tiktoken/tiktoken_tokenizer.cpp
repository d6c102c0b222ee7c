#include "tiktoken_tokenizer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <unordered_map>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/make_pattern.h"
#include "../common/unicode.h"

namespace titan::tiktoken {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

[[noreturn]] void fail_missing(const fs::path& folder, const std::string& what) {
  fail(ErrorKind::io, "no tiktoken file in '", folder.string(), "': ", what,
       "; set [model] hf_assets_path to the folder that holds tokenizer.model, or name the file by "
       "option 'file'");
}

fs::path find_file(const std::string& option, const fs::path& folder) {
  std::error_code ignored;
  if (folder.empty()) fail_missing(folder, "no folder is given");
  if (has_file(folder)) return folder;
  if (!fs::is_directory(folder, ignored)) fail_missing(folder, "the folder does not exist");
  if (!option.empty()) {
    if (!has_file(folder / option)) fail_missing(folder, "there is no file '" + option + "'");
    return folder / option;
  }
  for (const char* name : {"tokenizer.model", "original/tokenizer.model"}) {
    if (has_file(folder / name)) return folder / name;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path());
  }
  if (found.empty()) fail_missing(folder, "there is neither tokenizer.model nor *.tiktoken");
  if (found.size() > 1) fail_missing(folder, "there are several files *.tiktoken");
  return found[0];
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  TITAN_CHECK(in.is_open(), io, "cannot open ", file.string(), ": ", std::strerror(errno));
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  TITAN_CHECK(!in.bad(), io, "cannot read ", file.string(), ": ", std::strerror(errno));
  return content;
}

std::unique_ptr<bpe::Pattern> make_pattern(const std::string& pattern) {
  TITAN_CHECK(bpe::is_valid_utf8(pattern) && !pattern.empty(), config,
              "option 'pattern' of tokenizer 'tiktoken' must be a regex in UTF-8");
  try {
    return bpe::make_regex_pattern(pattern, bpe::Dialect::rust);
  } catch (const bpe::PatternError& error) {
    fail(ErrorKind::config,
         "option 'pattern' of tokenizer 'tiktoken' does not compile: ", error.what(), " at byte ",
         error.position, " of ", in_quotes(pattern, 1000));
  }
}

// Every split of a token into two tokens is a merge with the token's rank.
bpe::Engine make_engine(const RankFile& file) {
  std::unordered_map<std::string_view, int32_t> ranks;
  bpe::SymbolMap bytes;
  std::vector<int32_t> byte_ids;
  bpe::WholePieces whole;
  std::vector<const RankedToken*> tokens;
  for (const RankedToken& token : file.tokens) {
    ranks.emplace(token.bytes, token.rank);
    tokens.push_back(&token);
    whole.add(token.bytes, token.rank);
    if (token.bytes.size() > 1) continue;
    bytes.put(static_cast<unsigned char>(token.bytes[0]), token.rank);
    byte_ids.push_back(token.rank);
  }
  // shorter tokens first, so a token's parts precede it
  std::stable_sort(tokens.begin(), tokens.end(), [](const RankedToken* a, const RankedToken* b) {
    return a->bytes.size() < b->bytes.size();
  });
  std::vector<bpe::MergeRule> rules;
  for (const RankedToken* token : tokens) {
    const std::string_view text = token->bytes;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = ranks.find(text.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(text.substr(cut));
      if (right == ranks.end()) continue;
      rules.push_back(
          {left->second, right->second, {static_cast<uint32_t>(token->rank), token->rank}});
    }
  }
  std::vector<bpe::SymbolMap> maps;
  maps.push_back(std::move(bytes));
  return {bpe::SymbolTable({}, std::move(maps), std::move(byte_ids)), rules, std::move(whole)};
}

std::optional<int32_t> id_of(const char* option, const std::string& content,
                             const std::vector<SpecialToken>& tokens) {
  if (content.empty()) return std::nullopt;
  for (const SpecialToken& token : tokens) {
    if (token.content == content) return token.id;
  }
  fail(ErrorKind::config, "option '", option, "' of tokenizer 'tiktoken' names ",
       in_quotes(content), ", which is not among special_tokens; set it to \"\" for none");
}

}  // namespace

struct TiktokenTokenizer::PieceSink final : bpe::MatchSink {
  explicit PieceSink(bpe::IdWriter& w) : writer(w) {}
  void match(size_t begin, size_t end) override {
    if (begin != end) writer.piece(text.substr(begin, end - begin));
  }
  bpe::IdWriter& writer;
  std::string_view text;
};

struct TiktokenTokenizer::TextSink final : bpe::AddedTokenSink {
  TextSink(const bpe::Pattern& p, bpe::RegexScratch& r, PieceSink& s)
      : pattern(p), regex(r), pieces(s) {}
  void token(int32_t id) override { pieces.writer.token(id); }
  void text(std::string_view part) override {
    pieces.text = part;
    pattern.find_all(part, regex, pieces);
  }
  const bpe::Pattern& pattern;
  bpe::RegexScratch& regex;
  PieceSink& pieces;
};

TiktokenTokenizer::TiktokenTokenizer(const TiktokenOptions& options, TokenizerContext context)
    : TiktokenTokenizer(options, [&] {
        const fs::path file = find_file(options.file, context.assets_path);
        return std::pair(parse_rank_file(read_file(file), file.string()), file.string());
      }()) {}

TiktokenTokenizer::TiktokenTokenizer(const TiktokenOptions& options,
                                     std::pair<RankFile, std::string> ranks)
    : TiktokenTokenizer(options, std::move(ranks.first), ranks.second) {}

TiktokenTokenizer::TiktokenTokenizer(const TiktokenOptions& options, RankFile ranks,
                                     const std::string& name)
    : pattern_(make_pattern(options.pattern)),
      engine_(make_engine(ranks)),
      spelled_tokens_(options.parse_special_tokens ? bpe::SpelledTokens::become_ids
                                                   : bpe::SpelledTokens::stay_text) {
  for (RankedToken& token : ranks.tokens) {
    const auto id = static_cast<size_t>(token.rank);
    if (id >= bytes_.size()) bytes_.resize(id + 1);
    bytes_[id] = std::move(token.bytes);
  }
  const std::vector<SpecialToken> special =
      expand_special_tokens(options.special_tokens, static_cast<int32_t>(bytes_.size()));
  is_special_.resize(bytes_.size());
  for (const SpecialToken& token : special) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= bytes_.size()) {
      bytes_.resize(id + 1);
      is_special_.resize(id + 1);
    }
    TITAN_CHECK(bytes_[id].empty(), config, "special token ", in_quotes(token.content), " has id ",
                id, ", which is the rank of a token in ", name);
    is_special_[id] = true;
    finder_.add({.content = token.content, .id = token.id, .special = true}, token.content);
  }
  special_tokens_ = {.bos = id_of("bos", options.bos, special),
                     .eos = id_of("eos", options.eos, special),
                     .pad = id_of("pad", options.pad, special)};
}

void TiktokenTokenizer::encode(std::string_view utf8, bpe::SpelledTokens special,
                               std::vector<int32_t>& ids) const {
  const auto lease = scratches_.lend();
  Scratch& scratch = *lease;
  utf8 = bpe::document_text(utf8, scratch.repaired);
  bpe::IdWriter writer(engine_, scratch.writer, ids);
  PieceSink pieces(writer);
  TextSink texts(*pattern_, scratch.regex, pieces);
  finder_.split(utf8, special, texts);
  writer.finish();
}

std::string TiktokenTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    TITAN_CHECK(ids[i] >= 0 && ids[i] < vocab_size(), data, "cannot decode id ", ids[i],
                " at position ", i, ": ids must be in [0, ", vocab_size() - 1, "]");
    TITAN_CHECK(is_special_[id] || !bytes_[id].empty(), data, "cannot decode id ", ids[i],
                " at position ", i, ": no token has this id");
    bytes += bytes_[id];
  }
  if (bpe::is_valid_utf8(bytes)) return bytes;
  std::string repaired;
  bpe::append_repaired(bytes, repaired);
  return repaired;
}

}  // namespace titan::tiktoken
