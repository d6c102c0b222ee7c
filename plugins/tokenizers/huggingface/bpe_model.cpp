#include "bpe_model.h"

#include <array>

#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "../common/unicode.h"
#include "byte_level.h"

namespace titan::huggingface {
namespace {

// Bytes that do not occur in UTF-8.
bool never_occurs(unsigned byte) {
  return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5;
}

std::string fallback_token(unsigned byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">";
}

std::string text_or_empty(const JsonView& model, std::string_view field) {
  const std::optional<JsonView> given = model.find(field);
  return given ? given->text() : std::string();
}

// Prefix and suffix of a unit, for each map of a SymbolTable.
struct Affixes {
  std::string prefix;
  std::string suffix;
};
std::vector<Affixes> affixes_of(const BpeOptions& options) {
  const std::string& prefix = options.continuing_subword_prefix;
  const std::string& suffix = options.end_of_word_suffix;
  if (prefix.empty() && suffix.empty()) return {{}};
  return {{"", ""}, {prefix, ""}, {"", suffix}, {prefix, suffix}};
}

// The character of `token` between its affixes, if it is exactly one.
std::optional<char32_t> single_character(std::string_view token, const Affixes& affixes) {
  if (token.size() <= affixes.prefix.size() + affixes.suffix.size()) return std::nullopt;
  if (!token.starts_with(affixes.prefix) || !token.ends_with(affixes.suffix)) return std::nullopt;
  token.remove_prefix(affixes.prefix.size());
  token.remove_suffix(affixes.suffix.size());
  const bpe::CodePoint c = bpe::decode_utf8(token.data());
  if (static_cast<size_t>(c.length) != token.size()) return std::nullopt;
  return c.value;
}

class SymbolsMaker {
 public:
  SymbolsMaker(const BpeOptions& options, const Vocabulary& vocabulary, const JsonView& vocab)
      : options_(options), vocabulary_(vocabulary), vocab_(vocab) {}

  bpe::SymbolTable make() {
    bpe::SymbolOptions symbols;
    if (options_.unk_token) {
      symbols.unknown = vocabulary_.find(*options_.unk_token);
      ids_.push_back(symbols.unknown.value());
    }
    symbols.fuse_unknown = options_.fuse_unk;
    const std::vector<Affixes> affixes = affixes_of(options_);
    symbols.has_affixes = affixes.size() > 1;
    std::vector<bpe::SymbolMap> maps(affixes.size());
    if (options_.is_byte_level) {
      for (size_t i = 0; i < maps.size(); ++i) put_bytes(affixes[i], maps[i]);
    } else {
      symbols.unit = bpe::SymbolOptions::Unit::character;
      for (size_t i = 0; i < maps.size(); ++i) put_characters(affixes[i], maps[i]);
      if (options_.byte_fallback) read_fallback(symbols);
      if (!options_.byte_fallback && !symbols.unknown) {
        vocab_.fail(
            "there is neither unk_token nor byte_fallback: characters that have no token "
            "would get lost; name an unk_token in the model");
      }
    }
    return {symbols, std::move(maps), std::move(ids_)};
  }

 private:
  void put(char32_t unit, int32_t id, bpe::SymbolMap& map) {
    map.put(unit, id);
    ids_.push_back(id);
  }

  void put_bytes(const Affixes& affixes, bpe::SymbolMap& map) {
    int num_missing = 0;
    unsigned first_missing = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string token =
          affixes.prefix + token_of_byte(static_cast<uint8_t>(byte)) + affixes.suffix;
      if (const std::optional<int32_t> id = vocabulary_.find(token)) {
        put(byte, *id, map);
      } else if (!never_occurs(byte) && num_missing++ == 0) {
        first_missing = byte;
      }
    }
    if (num_missing == 0) return;
    const std::string what = detail::concat(
        num_missing, " of the 256 bytes have no token, the first is byte ", first_missing, " (\"",
        token_of_byte(static_cast<uint8_t>(first_missing)), "\")");
    if (options_.byte_fallback) {
      vocab_.fail(what + "; byte_fallback is not supported for byte-level tokenizers that need it");
    }
    if (options_.unk_token) return;
    vocab_.fail(what +
                ", and there is no unk_token: text would get lost; add the missing tokens, or "
                "train with the byte-level alphabet as the initial alphabet");
  }

  void put_characters(const Affixes& affixes, bpe::SymbolMap& map) {
    for (const auto& [token, id] : vocabulary_.ids()) {
      if (const auto c = single_character(token, affixes)) put(*c, id, map);
    }
  }

  void read_fallback(bpe::SymbolOptions& symbols) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string token = fallback_token(byte);
      if (const std::optional<int32_t> id = vocabulary_.find(token)) {
        symbols.byte_fallback[byte] = *id;
        ids_.push_back(*id);
      } else if (!symbols.unknown && !never_occurs(byte)) {
        vocab_.fail("token \"" + token +
                    "\" is missing, which byte_fallback needs where there is no unk_token: text "
                    "would get lost");
      }
    }
  }

  const BpeOptions& options_;
  const Vocabulary& vocabulary_;
  const JsonView& vocab_;
  std::vector<int32_t> ids_;
};

TextMerge read_merge(const JsonView& merge) {
  if (merge.is_array()) {
    const std::vector<JsonView> parts = merge.items();
    if (parts.size() != 2) {
      merge.fail(detail::concat("a merge has two tokens, got ", parts.size()));
    }
    return {parts[0].text(), parts[1].text()};
  }
  const std::string text = merge.text();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    merge.fail("a merge has two tokens with one space between, got \"" + text +
               "\"; write tokens that hold spaces as [\"left\", \"right\"]");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

BpeOptions read_bpe_options(const JsonView& model, bool is_byte_level) {
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  if (const auto dropout = model.find("dropout")) {
    if (!dropout->json().is_number() || dropout->json().get<double>() != 0) {
      dropout->fail("dropout makes ids random and is not supported; supported: null");
    }
  }
  BpeOptions options;
  options.is_byte_level = is_byte_level;
  if (const auto unknown = model.find("unk_token")) options.unk_token = unknown->text();
  options.continuing_subword_prefix = text_or_empty(model, "continuing_subword_prefix");
  options.end_of_word_suffix = text_or_empty(model, "end_of_word_suffix");
  options.fuse_unk = model.flag_or("fuse_unk", false);
  options.byte_fallback = model.flag_or("byte_fallback", false);
  options.ignore_merges = model.flag_or("ignore_merges", false);
  const bool has_affixes =
      !options.continuing_subword_prefix.empty() || !options.end_of_word_suffix.empty();
  if (options.byte_fallback && has_affixes) {
    model.at("byte_fallback")
        .fail("is not supported together with continuing_subword_prefix or end_of_word_suffix");
  }
  return options;
}

std::vector<TextMerge> read_merges(const JsonView& merges, std::vector<size_t>& places) {
  const nlohmann::json& list = merges.json();
  if (!list.is_array()) merges.items();  // throws with the reason
  std::vector<TextMerge> result;
  result.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string() && list[i].get_ref<const std::string&>().starts_with("#version")) {
      continue;
    }
    const bool plain = list[i].is_array() && list[i].size() == 2 && list[i][0].is_string() &&
                       list[i][1].is_string();
    // Builds the text of the place only for entries that may be wrong.
    result.push_back(plain ? TextMerge{list[i][0].get<std::string>(), list[i][1].get<std::string>()}
                           : read_merge(JsonView(list[i], merges.file(),
                                                 detail::concat(merges.path(), "[", i, "]"))));
    places.push_back(i);
  }
  return result;
}

bpe::Engine make_engine(const BpeOptions& options, const Vocabulary& vocabulary,
                        const std::vector<TextMerge>& merges, const JsonView& vocab,
                        const std::function<void(size_t, const std::string&)>& fail_merge) {
  std::vector<bpe::MergeRule> rules;
  rules.reserve(merges.size());
  const size_t prefix = options.continuing_subword_prefix.size();
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    const auto id_of = [&](const std::string& token) {
      const std::optional<int32_t> id = vocabulary.find(token);
      if (!id) {
        fail_merge(i, "merge \"" + shortened(left) + "\" + \"" + shortened(right) +
                          "\" needs the token \"" + shortened(token) +
                          "\", which is not in the vocab");
      }
      return *id;
    };
    const int32_t left_id = id_of(left);
    const int32_t right_id = id_of(right);
    if (right.size() < prefix) {
      fail_merge(i, "token \"" + right + "\" is shorter than continuing_subword_prefix");
    }
    rules.push_back(
        {left_id, right_id, {static_cast<uint32_t>(i), id_of(left + right.substr(prefix))}});
  }
  bpe::WholePieces whole;
  if (options.ignore_merges) {
    for (const auto& [token, id] : vocabulary.ids()) {
      if (!options.is_byte_level) {
        whole.add(token, id);
      } else if (std::optional<std::string> bytes = bytes_of_token(token)) {
        whole.add(*std::move(bytes), id);
      }
    }
  }
  return {SymbolsMaker(options, vocabulary, vocab).make(), rules, std::move(whole)};
}

}  // namespace titan::huggingface
