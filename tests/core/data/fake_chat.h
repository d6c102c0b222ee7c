// A handwritten chat template, and a tokenizer of bytes and special tokens, for tests of
// conversations.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

namespace titan::testing {

/// ChatML: each message as <|im_start|>role
/// content<|im_end|>
/// . With "shortens", answers except the last become "...", as in templates that drop earlier
/// reasoning. With "greets", the generation prompt ends with other words than the answer begins
/// with.
class ChatMl final : public ChatTemplate {
 public:
  std::string render(const Value& conversation, bool adds_generation_prompt) const override {
    std::string text;
    const Value::List& messages = conversation.at("messages").as_list();
    for (size_t i = 0; i < messages.size(); ++i) {
      const std::string& role = messages[i].at("role").as_string();
      TITAN_CHECK(role != "nobody", data, "nobody may not speak");
      const bool is_dropped =
          conversation.find("shortens") && role == "assistant" && i + 1 < messages.size();
      text += "<|im_start|>" + role + "\n" +
              (is_dropped ? "..." : messages[i].at("content").as_string()) + "<|im_end|>\n";
    }
    if (adds_generation_prompt) text += "<|im_start|>assistant\n";
    if (adds_generation_prompt && conversation.find("greets")) text += "hello ";
    return text;
  }
};

/// One token per byte, except one for each run of line breaks (2000 + their number), as byte pairs
/// merge them; <|im_start|> = 1002, <|im_end|> = 1003.
class ChatTokenizer final : public Tokenizer, public SpecialTokenText {
 public:
  static constexpr int32_t kStart = 1002, kEnd = 1003, kBreaks = 2000;

  explicit ChatTokenizer(SpecialTokens special = {}) : special_(special) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t breaks = std::min(text.find_first_not_of('\n', at), text.size()) - at;
      ids.push_back(breaks > 0 ? kBreaks + static_cast<int32_t>(breaks)
                               : static_cast<unsigned char>(text[at]));
      at += std::max<size_t>(1, breaks);
    }
  }
  void encode_with_special_tokens(std::string_view text, std::vector<int32_t>& ids) const override {
    while (!text.empty()) {
      const auto [at, id] = std::min(std::pair(text.find("<|im_start|>"), kStart),
                                     std::pair(text.find("<|im_end|>"), kEnd));
      encode(text.substr(0, at), ids);
      if (at == text.npos) return;
      ids.push_back(id);
      text.remove_prefix(at + (id == kStart ? 12 : 10));
    }
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (id < 256) text += static_cast<char>(id);
      if (id > kBreaks) text.append(static_cast<size_t>(id - kBreaks), '\n');
    }
    return text;
  }
  int64_t vocab_size() const override { return 3000; }
  SpecialTokens special_tokens() const override { return special_; }

 private:
  SpecialTokens special_;
};

/// {"user", "hi"} becomes {"role": "user", "content": "hi"}.
inline Value chat(const std::vector<std::pair<std::string, std::string>>& messages) {
  Value::List list;
  for (const auto& [role, content] : messages)
    list.push_back(Value::map({{"role", role}, {"content", content}}));
  return Value::map({{"messages", Value(std::move(list))}});
}

/// Documents held in memory.
class WrittenDataset final : public IndexedDataset {
 public:
  explicit WrittenDataset(std::vector<Document> documents) : documents_(std::move(documents)) {}
  int64_t size() const override { return static_cast<int64_t>(documents_.size()); }
  void read(int64_t index, Document& document) const override {
    document = documents_[static_cast<size_t>(index)];
  }
  std::string place(int64_t index) const override { return "written:" + std::to_string(index); }
  std::string fingerprint() const override { return "written"; }

 private:
  std::vector<Document> documents_;
};

/// One pair: a prompt with its completion. Several pairs: completions that are compared.
inline Document completions(std::vector<std::pair<std::string, std::string>> pairs) {
  Document document;
  for (auto& [prompt, completion] : pairs)
    document.conversations.push_back(
        {.prompt = std::move(prompt), .completion = std::move(completion)});
  return document;
}

}  // namespace titan::testing
