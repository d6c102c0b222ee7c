#include "decoder.h"

#include <titan/error.h>

#include "byte_level.h"
#include "unicode.h"

namespace titan::huggingface {
namespace {

constexpr const char* kSupported = "ByteLevel, Sequence of ByteLevel";

void check(const JsonView& view) {
  const std::string type = view.at("type").text();
  if (type == "Sequence") {
    view.allow_only({"type", "decoders"});
    const std::vector<JsonView> items = view.at("decoders").items();
    if (items.size() != 1) view.fail(std::string("must hold ByteLevel alone"));
    check(items[0]);
  } else if (type == "ByteLevel") {
    view.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else {
    view.fail_unsupported_type(kSupported);
  }
}

}  // namespace

Decoder::Decoder(const std::optional<JsonView>& view, const JsonView& document,
                 const Vocabulary& vocabulary, const std::vector<AddedToken>& added_tokens) {
  if (!view) {
    JsonView(document.json(), document.file(), "decoder")
        .fail(detail::concat("is missing or null; supported here: ", kSupported));
  }
  check(*view);
  bytes_.reserve(vocabulary.size());
  for (std::string_view token : vocabulary.tokens_by_id()) {
    bytes_.push_back(bytes_of_token(token).value_or(std::string(token)));
  }
  for (const AddedToken& token : added_tokens) {
    // An added token spells itself, not bytes in the byte-level alphabet.
    bytes_[static_cast<size_t>(token.id)] = token.special ? std::string() : token.content;
  }
}

std::string Decoder::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    TITAN_CHECK(ids[i] >= 0 && ids[i] < num_ids(), data, "cannot decode id ", ids[i],
                " at position ", i, ": ids must be in [0, ", num_ids() - 1, "]");
    bytes += bytes_[static_cast<size_t>(ids[i])];
  }
  if (is_valid_utf8(bytes)) return bytes;
  std::string repaired;
  append_repaired(bytes, repaired);
  return repaired;
}

}  // namespace titan::huggingface
