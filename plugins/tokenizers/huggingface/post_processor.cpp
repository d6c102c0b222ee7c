#include "post_processor.h"

#include <string>

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan::huggingface {
namespace {

int32_t id_of_template_token(const JsonView& processor, const JsonView& name,
                             const Vocabulary& vocabulary) {
  const std::string token = name.text();
  const std::optional<int32_t> id = vocabulary.find(token);
  if (!id) name.fail("token \"" + token + "\" is in neither vocab nor added_tokens");
  const JsonView ids = processor.at("special_tokens").at(token).at("ids");
  const std::vector<JsonView> listed = ids.items();
  if (listed.size() != 1 || listed[0].id() != *id) {
    ids.fail(
        detail::concat("token \"", token, "\" has id ", *id, ", but here ", ids.json().dump()));
  }
  return *id;
}

// Loaders add at most one token per side: with more, tokenizer_config.json names BOS and EOS.
FrameTokens read_template(const JsonView& processor, const Vocabulary& vocabulary) {
  processor.allow_only({"type", "single", "pair", "special_tokens"});
  FrameTokens frame;
  int num_before = 0;
  int num_after = 0;
  int num_texts = 0;
  for (const JsonView& item : processor.at("single").items()) {
    item.allow_only({"SpecialToken", "Sequence"});
    if (const auto special = item.find("SpecialToken")) {
      const int32_t id = id_of_template_token(processor, special->at("id"), vocabulary);
      (num_texts == 0 ? frame.bos : frame.eos) = id;
      ++(num_texts == 0 ? num_before : num_after);
    } else {
      item.at("Sequence").require_object();
      ++num_texts;
    }
  }
  if (num_texts != 1) {
    processor.at("single").fail(
        detail::concat("the template must hold the text once, it holds it ", num_texts, " times"));
  }
  frame.begins = num_before > 0;
  if (num_before != 1) frame.bos.reset();
  if (num_after != 1) frame.eos.reset();
  return frame;
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}: one token on each side.
int32_t id_of_pair(const JsonView& pair, const Vocabulary& vocabulary) {
  const std::vector<JsonView> parts = pair.items();
  if (parts.size() != 2) pair.fail("must be [token, id]");
  const std::optional<int32_t> id = vocabulary.find(parts[0].text());
  if (!id || *id != parts[1].id()) pair.fail("no token has this text and this id");
  return *id;
}

}  // namespace

FrameTokens read_post_processor(const std::optional<JsonView>& view, const Vocabulary& vocabulary) {
  if (!view) return {};
  const std::string type = view->at("type").text();
  if (type == "ByteLevel") {
    view->allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  if (type == "TemplateProcessing") return read_template(*view, vocabulary);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    view->allow_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    return {.bos = id_of_pair(view->at("cls"), vocabulary),
            .eos = id_of_pair(view->at("sep"), vocabulary),
            .begins = true};
  }
  if (type != "Sequence") {
    view->fail_unsupported_type(
        "null, ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence");
  }
  view->allow_only({"type", "processors"});
  FrameTokens frame;
  for (const JsonView& item : view->at("processors").items()) {
    const FrameTokens inner = read_post_processor(item, vocabulary);
    if (inner.bos) frame.bos = inner.bos;
    if (inner.eos) frame.eos = inner.eos;
    frame.begins = frame.begins || inner.begins;
  }
  return frame;
}

}  // namespace titan::huggingface
