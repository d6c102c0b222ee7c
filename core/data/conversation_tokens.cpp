#include "core/data/conversation_tokens.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/data/token_cuts.h"

namespace titan::core {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

/// Bytes [begin, end) of a text.
struct Span {
  size_t begin = 0, end = 0;
};

bool is_learned(const Value& message) {
  const Value* role = message.find("role");
  const Value* weight = message.find("weight");
  const bool is_without_weight =
      weight && (weight->is_integer() || weight->is_number()) && weight->as_number() == 0;
  return role && role->is_string() && role->as_string() == "assistant" && !is_without_weight;
}

/// Throws unless `whole` begins with `start`, the rendering of the messages up to `number` (from
/// 1).
void require_start(const std::string& start, const std::string& whole, size_t number,
                   const char* what) {
  if (whole.starts_with(start)) return;
  const auto [at, other] = std::mismatch(start.begin(), start.end(), whole.begin(), whole.end());
  const auto rest = [](auto from, auto end) {
    return in_quotes(std::string_view(&*from, static_cast<size_t>(end - from)), 40);
  };
  fail(ErrorKind::data, "the chat template renders message ", number, " differently ", what, ": ",
       at == start.end() ? "''" : rest(at, start.end()), " becomes ",
       other == whole.end() ? "''" : rest(other, whole.end()),
       "; so the answer's part of the text cannot be determined. Learn the last answer only (the "
       "data set's option 'learn'), or use a template that renders each turn the same at any "
       "position");
}

/// Appends `ids` to the document as one more sequence whose targets are the tokens in `learned`.
void append_sequence(const std::vector<int32_t>& ids,
                     const std::vector<std::pair<size_t, size_t>>& learned,
                     const Tokenizer& tokenizer, TokenizedDocument& document) {
  const size_t start = document.tokens.size();
  document.starts.push_back(static_cast<int32_t>(start));
  document.tokens.insert(document.tokens.end(), ids.begin(), ids.end());
  document.is_target.resize(start + ids.size(), 0);
  for (const auto& [begin, end] : learned) {
    if (begin >= end) continue;
    std::fill(document.is_target.begin() + static_cast<int64_t>(start + begin),
              document.is_target.begin() + static_cast<int64_t>(start + end), uint8_t{1});
    const auto answer = std::span(ids).subspan(begin, end - begin);
    document.num_bytes += static_cast<double>(tokenizer.decode(answer).size());
  }
  if (!ids.empty()) document.is_target[start] = 0;
}

}  // namespace

ConversationTokens::ConversationTokens(const Tokenizer& tokenizer,
                                       const ChatTemplate* chat_template)
    : tokenizer_(tokenizer),
      special_text_(dynamic_cast<const SpecialTokenText*>(&tokenizer)),
      chat_template_(chat_template) {}

void ConversationTokens::append(const Conversation& conversation,
                                TokenizedDocument& document) const {
  if (conversation.chat.is_null())
    append_completion(conversation, document);
  else
    append_chat(conversation, document);
}

void ConversationTokens::append_chat(const Conversation& conversation,
                                     TokenizedDocument& document) const {
  TITAN_CHECK(chat_template_ && special_text_, data,
              "the document is a chat; it needs chat_template.name and a tokenizer that reads "
              "special tokens in a text");
  const Value::List& messages = conversation.chat.at("messages").as_list();
  const std::string text = chat_template_->render(conversation.chat, false);
  Value part = conversation.chat;
  const auto render_first = [&](size_t count, bool adds_generation_prompt) {
    part["messages"] =
        Value::List(messages.begin(), messages.begin() + static_cast<int64_t>(count));
    return chat_template_->render(part, adds_generation_prompt);
  };
  std::vector<Span> answers;
  for (auto m = static_cast<size_t>(conversation.first_target); m < messages.size(); ++m) {
    if (!is_learned(messages[m])) continue;
    const std::string before = render_first(m, true);
    const std::string behind = m + 1 == messages.size() ? text : render_first(m + 1, false);
    require_start(before, behind, m + 1, "from the prompt that asks for it");
    require_start(behind, text, m + 1, "when other messages follow");
    answers.push_back({before.size(), behind.size()});
  }

  std::vector<int32_t> ids;
  const Encode encode = [this](std::string_view utf8, std::vector<int32_t>& into) {
    special_text_->encode_with_special_tokens(utf8, into);
  };
  encode(text, ids);
  // for each answer: its start, its end without trailing white space, the end of its turn
  std::vector<size_t> places;
  for (const Span& answer : answers) {
    const std::string_view words(text.data() + answer.begin, answer.end - answer.begin);
    const size_t last = words.find_last_not_of(kWhiteSpace);
    const size_t end = last == words.npos ? answer.end : answer.begin + last + 1;
    places.insert(places.end(), {answer.begin, end, answer.end});
  }
  const std::vector<TokenCut> cuts = cut_tokens(text, ids, places, encode, tokenizer_);
  std::vector<std::pair<size_t, size_t>> learned;
  for (size_t i = 0; i < cuts.size(); i += 3) {
    const size_t begin = cuts[i].ended, content_end = cuts[i + 1].begun;
    const bool ends_turn =
        content_end > begin && tokenizer_.decode(std::array{ids[content_end - 1]}).empty();
    learned.push_back({begin, ends_turn ? content_end : cuts[i + 2].begun});
  }
  append_sequence(ids, learned, tokenizer_, document);
}

void ConversationTokens::append_completion(const Conversation& conversation,
                                           TokenizedDocument& document) const {
  const SpecialTokens special = tokenizer_.special_tokens();
  const std::string text = conversation.prompt + conversation.completion;
  const Encode encode = [this](std::string_view utf8, std::vector<int32_t>& into) {
    tokenizer_.encode(utf8, into);
  };
  std::vector<int32_t> ids;
  encode(text, ids);
  size_t begin = cut_tokens(text, ids, {conversation.prompt.size()}, encode, tokenizer_)[0].ended;
  if (special.bos) {
    ids.insert(ids.begin(), *special.bos);
    ++begin;
  }
  if (special.eos) ids.push_back(*special.eos);
  append_sequence(ids, {{begin, ids.size()}}, tokenizer_, document);
}

}  // namespace titan::core
