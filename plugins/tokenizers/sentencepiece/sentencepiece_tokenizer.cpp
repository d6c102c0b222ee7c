#include "sentencepiece_tokenizer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <titan/error.h>

#include "../common/unicode.h"

namespace titan::sentencepiece {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";        // U+2581, represents a space
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::filesystem::path model_path(const SentencepieceOptions& options,
                                 const TokenizerContext& context) {
  std::filesystem::path path = context.assets_path;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) path /= options.file;
  return path;
}

ModelFile read_model(const std::filesystem::path& path) {
  std::error_code ignored;
  TITAN_CHECK(!std::filesystem::is_fifo(path, ignored), io, "cannot open the model ", path.string(),
              ": it is not a regular file");
  std::ifstream in(path, std::ios::binary);
  TITAN_CHECK(in.is_open() && !std::filesystem::is_directory(path), io, "cannot open the model ",
              path.string(), ": ", std::strerror(in.is_open() ? EISDIR : errno),
              "; [model] hf_assets_path must be a folder that holds it");
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  TITAN_CHECK(!in.bad(), io, "cannot read ", path.string(), ": ", std::strerror(errno));
  return parse_model(bytes, path.string());
}

PieceTrie user_defined_pieces(const ModelFile& model) {
  std::vector<std::pair<std::string_view, int32_t>> texts;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (model.pieces[id].type == PieceType::user_defined)
      texts.emplace_back(model.pieces[id].text, static_cast<int32_t>(id));
  return PieceTrie(std::move(texts));
}

/// Appends the bytes of byte pieces; each byte that is not part of UTF-8 becomes U+FFFD.
void append_bytes(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const size_t valid = bpe::valid_utf8_prefix(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) return;
    text += kReplacement;
    bytes.remove_prefix(1);
  }
}

void append_with_blanks(std::string_view piece, std::string& text) {
  for (size_t space; (space = piece.find(kSpace)) != std::string_view::npos;) {
    text.append(piece.substr(0, space)).append(1, ' ');
    piece.remove_prefix(space + kSpace.size());
  }
  text += piece;
}

}  // namespace

struct SentencepieceTokenizer::Scratch {
  std::string repaired;
  std::string normalized;
  std::unique_ptr<BpeEncoder::Scratch> byte_pairs;  // big: made when needed
  UnigramEncoder::Scratch unigram;
};

SentencepieceTokenizer::SentencepieceTokenizer(const SentencepieceOptions& options,
                                               TokenizerContext context)
    : SentencepieceTokenizer(read_model(model_path(options, context))) {}

SentencepieceTokenizer::SentencepieceTokenizer(std::string_view model, const std::string& name)
    : SentencepieceTokenizer(parse_model(model, name)) {}

SentencepieceTokenizer::SentencepieceTokenizer(ModelFile model)
    : model_(std::move(model)),
      user_defined_(user_defined_pieces(model_)),
      normalizer_(model_.normalizer, model_.treat_whitespace_as_suffix, user_defined_, model_.name),
      byte_of_(model_.pieces.size(), -1) {
  if (!model_.denormalizer.charsmap.empty())
    denormalizer_.emplace(model_.denormalizer, false, no_pieces_, model_.name);
  if (model_.type == ModelType::bpe)
    encoder_.emplace<BpeEncoder>(model_, user_defined_);
  else
    encoder_.emplace<UnigramEncoder>(model_);
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const Piece& piece = model_.pieces[id];
    if (piece.type == PieceType::control || piece.type == PieceType::unknown)
      special_pieces_.add({.content = piece.text, .id = static_cast<int32_t>(id), .special = true},
                          piece.text);
  }
  for (size_t byte = 0; byte < model_.byte_ids.size(); ++byte)
    byte_of_[static_cast<size_t>(model_.byte_ids[byte])] = static_cast<int16_t>(byte);
}

SentencepieceTokenizer::~SentencepieceTokenizer() = default;

void SentencepieceTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  const auto lease = scratches_.lend();
  Scratch& scratch = *lease;
  encode_valid(bpe::document_text(utf8, scratch.repaired), scratch, ids);
}

void SentencepieceTokenizer::encode_with_special_tokens(std::string_view utf8,
                                                        std::vector<int32_t>& ids) const {
  struct Parts final : bpe::AddedTokenSink {
    Parts(const SentencepieceTokenizer& t, Scratch& s, std::vector<int32_t>& i)
        : tokenizer(t), scratch(s), ids(i) {}
    void token(int32_t id) override { ids.push_back(id); }
    void text(std::string_view part) override { tokenizer.encode_valid(part, scratch, ids); }
    const SentencepieceTokenizer& tokenizer;
    Scratch& scratch;
    std::vector<int32_t>& ids;
  };
  const auto lease = scratches_.lend();
  Scratch& scratch = *lease;
  Parts parts(*this, scratch, ids);
  special_pieces_.split(bpe::document_text(utf8, scratch.repaired), bpe::SpelledTokens::become_ids,
                        parts);
}

void SentencepieceTokenizer::encode_valid(std::string_view utf8, Scratch& scratch,
                                          std::vector<int32_t>& ids) const {
  normalizer_.apply(utf8, scratch.normalized);
  IdWriter writer(model_, ids);
  if (const auto* byte_pairs = std::get_if<BpeEncoder>(&encoder_)) {
    if (!scratch.byte_pairs) scratch.byte_pairs = std::make_unique<BpeEncoder::Scratch>();
    byte_pairs->encode(scratch.normalized, *scratch.byte_pairs, writer);
  } else {
    std::get<UnigramEncoder>(encoder_).encode(scratch.normalized, scratch.unigram, writer);
  }
}

std::string SentencepieceTokenizer::decode(std::span<const int32_t> ids) const {
  const NormalizerSpec& spec = model_.normalizer;
  const bool drops_first = spec.add_dummy_prefix || spec.remove_extra_whitespaces;
  bool at_start = true;  // a leading space of the next piece is not part of the text
  std::string text, bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    TITAN_CHECK(id >= 0 && id < vocab_size(), data, "cannot decode id ", id, " at position ", i,
                ": the ids of ", model_.name, " are 0 to ", vocab_size() - 1);
    const auto index = static_cast<size_t>(id);
    if (byte_of_[index] >= 0) {
      bytes += static_cast<char>(byte_of_[index]);
      continue;
    }
    append_bytes(bytes, text);
    bytes.clear();
    const Piece& piece = model_.pieces[index];
    if (piece.type == PieceType::control) continue;
    if (piece.type == PieceType::unknown) {
      text += model_.unknown_surface;
      continue;
    }
    std::string_view part = piece.text;
    if (at_start && text.empty() && drops_first && part.starts_with(kSpace)) {
      part.remove_prefix(kSpace.size());
      at_start = spec.remove_extra_whitespaces;
    }
    append_with_blanks(part, text);
  }
  append_bytes(bytes, text);
  if (!denormalizer_) return text;
  std::string denormalized;
  denormalizer_->apply(text, denormalized);
  return denormalized;
}

SpecialTokens SentencepieceTokenizer::special_tokens() const {
  return {.bos = model_.bos, .eos = model_.eos, .pad = model_.pad};
}

}  // namespace titan::sentencepiece
