#include "special_tokens.h"

#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "rank_file.h"

namespace titan::tiktoken {
namespace {

std::optional<int32_t> number(std::string_view text) {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

struct Range {
  std::string before;
  int32_t first;
  int32_t last;
  std::string after;
};

std::optional<Range> parse_range(std::string_view item) {
  const size_t open = item.find('{');
  const size_t dots = item.find("..", open);
  const size_t close = item.find('}', dots);
  if (open == item.npos || dots == item.npos || close == item.npos) return std::nullopt;
  const std::optional<int32_t> first = number(item.substr(open + 1, dots - open - 1));
  const std::optional<int32_t> last = number(item.substr(dots + 2, close - dots - 2));
  if (!first || !last) return std::nullopt;
  return Range{std::string(item.substr(0, open)), *first, *last,
               std::string(item.substr(close + 1))};
}

class Expansion {
 public:
  explicit Expansion(int32_t first_id) : next_(first_id) {}

  void item(std::string_view item) {
    const size_t equals = item.rfind('=');
    if (equals != item.npos) {
      if (const std::optional<int32_t> id = number(item.substr(equals + 1))) {
        next_ = *id;
        item = item.substr(0, equals);
      }
    }
    const std::optional<Range> range = parse_range(item);
    if (!range) return add(std::string(item));
    TITAN_CHECK(range->first <= range->last && range->last - range->first < kIdLimit, config,
                "special_tokens: ", in_quotes(item),
                " holds a range that is descending or too long");
    for (int32_t i = range->first; i <= range->last; ++i) {
      add(range->before + std::to_string(i) + range->after);
    }
  }
  std::vector<SpecialToken> take() { return std::move(tokens_); }

 private:
  void add(std::string content) {
    TITAN_CHECK(!content.empty(), config, "special_tokens: a token is empty");
    TITAN_CHECK(next_ < kIdLimit, config, "special_tokens: token ", in_quotes(content), " has id ",
                next_, "; the limit is ", kIdLimit - 1);
    TITAN_CHECK(contents_.insert(content).second, config, "special_tokens: token ",
                in_quotes(content), " is listed twice");
    TITAN_CHECK(ids_.insert(next_).second, config, "special_tokens: token ", in_quotes(content),
                " has id ", next_, ", which another special token has");
    tokens_.push_back({std::move(content), next_++});
  }

  int32_t next_;
  std::vector<SpecialToken> tokens_;
  std::set<std::string> contents_;
  std::set<int32_t> ids_;
};

}  // namespace

std::vector<SpecialToken> expand_special_tokens(const std::vector<std::string>& items,
                                                int32_t first_id) {
  Expansion expansion(first_id);
  for (const std::string& item : items) expansion.item(item);
  return expansion.take();
}

std::vector<std::string> llama3_special_tokens() {
  return {"<|begin_of_text|>",
          "<|end_of_text|>",
          "<|reserved_special_token_{0..1}|>",
          "<|finetune_right_pad_id|>",
          "<|reserved_special_token_2|>",
          "<|start_header_id|>",
          "<|end_header_id|>",
          "<|eom_id|>",
          "<|eot_id|>",
          "<|python_tag|>",
          "<|reserved_special_token_{3..247}|>"};
}

}  // namespace titan::tiktoken
