#include "decoder.h"

#include <titan/error.h>

#include "../common/unicode.h"
#include "byte_level.h"
#include "decoder_steps.h"
#include "pre_tokenizer_steps.h"

namespace titan::huggingface {
namespace {

constexpr const char* kSupportedDecoders =
    "null, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder, Sequence";

// Unwraps Sequences of one component.
JsonView unwrapped(JsonView view) {
  while (view.at("type").text() == "Sequence") {
    const std::vector<JsonView> items = view.at("decoders").items();
    if (items.size() != 1) break;
    view = items[0];
  }
  return view;
}

}  // namespace

Decoder::Decoder(const std::optional<JsonView>& view, const Vocabulary& vocabulary,
                 const std::vector<AddedToken>& added_tokens) {
  if (view) read_step(*view);
  joins_with_spaces_ = !view;
  is_byte_level_ = view && unwrapped(*view).at("type").text() == "ByteLevel";
  for (const std::string* token : vocabulary.tokens_by_id()) {
    std::optional<std::string> bytes;
    if (is_byte_level_ && token) bytes = bytes_of_token(*token);
    texts_.push_back(bytes ? *std::move(bytes) : token ? *token : std::string());
    is_left_out_.push_back(!token);
  }
  for (const AddedToken& token : added_tokens) {
    // An added token is plain text, not bytes in the byte-level alphabet.
    const auto id = static_cast<size_t>(token.id);
    texts_[id] = token.content;
    is_left_out_[id] = token.special;
  }
}

void Decoder::read_step(const JsonView& view) {
  const std::string type = view.at("type").text();
  if (type == "Sequence") {
    view.allow_only({"type", "decoders"});
    for (const JsonView& item : view.at("decoders").items()) read_step(item);
  } else if (type == "ByteLevel") {
    view.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    steps_.push_back(make_byte_level_decoder());
  } else if (type == "Replace") {
    view.allow_only({"type", "pattern", "content"});
    steps_.push_back(
        make_replace_decoder(read_pattern(view.at("pattern")), view.at("content").text()));
  } else if (type == "ByteFallback") {
    view.allow_only({"type"});
    steps_.push_back(make_byte_fallback_decoder());
  } else if (type == "Fuse") {
    view.allow_only({"type"});
    steps_.push_back(make_fuse_decoder());
  } else if (type == "Strip") {
    view.allow_only({"type", "content", "start", "stop"});
    steps_.push_back(make_strip_decoder(read_character(view.at("content")),
                                        static_cast<size_t>(view.at("start").id()),
                                        static_cast<size_t>(view.at("stop").id())));
  } else if (type == "Metaspace") {
    view.allow_only(
        {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    steps_.push_back(make_metaspace_decoder(read_character(view.at("replacement")),
                                            read_prepend_scheme(view) != PrependScheme::never));
  } else if (type == "BPEDecoder") {
    view.allow_only({"type", "suffix"});
    const JsonView suffix = view.at("suffix");
    if (suffix.text().empty()) suffix.fail("the suffix is empty");
    steps_.push_back(make_suffix_decoder(suffix.text()));
  } else {
    view.fail_unsupported_type(kSupportedDecoders);
  }
}

const std::string& Decoder::text_of(std::span<const int32_t> ids, size_t position) const {
  const int32_t id = ids[position];
  TITAN_CHECK(id >= 0 && id < num_ids(), data, "cannot decode id ", id, " at position ", position,
              ": ids must be in [0, ", num_ids() - 1, "]");
  return texts_[static_cast<size_t>(id)];
}

std::string Decoder::decode(std::span<const int32_t> ids) const {
  std::string result;
  if (is_byte_level_) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string& bytes = text_of(ids, i);
      if (!is_left_out_[static_cast<size_t>(ids[i])]) result += bytes;
    }
    if (bpe::is_valid_utf8(result)) return result;
    std::string repaired;
    bpe::append_repaired(result, repaired);
    return repaired;
  }
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& text = text_of(ids, i);
    if (!is_left_out_[static_cast<size_t>(ids[i])]) texts.push_back(text);
  }
  for (const std::unique_ptr<DecoderStep>& step : steps_) step->apply(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (joins_with_spaces_ && i > 0) result += ' ';
    result += texts[i];
  }
  return result;
}

}  // namespace titan::huggingface
