#include "requests.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/settings/diagnostics.h>
#include <titan/shown_text.h>

#include "documents.h"
#include "text_counts.h"

namespace titan::evaluation {
namespace {

using Ids = std::vector<int32_t>;

/// Whether a template of tokenizer.json begins with a special token, as in those of BERT and
/// RoBERTa.
bool begins_with_special(const Value& processor) {
  if (const Value* inner = processor.find("processors"); inner && inner->is_list())
    return std::any_of(inner->as_list().begin(), inner->as_list().end(), begins_with_special);
  if (processor.find("cls")) return true;
  const Value* single = processor.find("single");
  return single && single->is_list() && !single->as_list().empty() &&
         single->as_list().front().find("SpecialToken");
}

class RequestMaker {
 public:
  RequestMaker(const Tokenizer& tokenizer, const TokenRules& rules)
      : tokenizer_(tokenizer),
        special_(tokenizer.special_tokens()),
        rules_(rules),
        length_(static_cast<size_t>(rules.max_length)) {
    TITAN_CHECK(special_.bos || special_.eos, config,
                "the tokenizer has neither BOS nor EOS to put in front of a text without context");
  }

  /// pair() and windows() throw a data Error for a text with no tokens or too many.
  Request pair(const std::string& context, const std::string& continuation) const {
    Request request;
    const std::string_view kept = without_blanks_at_end(context);
    if (context.empty()) {
      request.context = {prefix()};
      tokenizer_.encode(continuation, request.target);
      // the text already begins with the prefix
      if (!request.target.empty() && request.target.front() == prefix())
        request.target.erase(request.target.begin());
    } else {
      request.context = encode(kept);
      Ids whole = encode(context + continuation);
      const size_t before = std::min(request.context.size(), whole.size());
      request.target.assign(whole.begin() + static_cast<std::ptrdiff_t>(before), whole.end());
      if (request.context.empty()) request.context = {prefix()};
    }
    TITAN_CHECK(!request.target.empty(), data, "the continuation ", in_quotes(continuation, 60),
                " has no tokens of its own after its context");
    TITAN_CHECK(request.target.size() <= length_, data, "the continuation has ",
                request.target.size(), " tokens, more than the ", length_,
                " of --max-length or validation's seq_len");
    const size_t size = request.context.size() + request.target.size();
    if (size > length_ + 1) {
      Ids& context_ids = request.context;
      context_ids.erase(context_ids.begin(),
                        context_ids.begin() + static_cast<std::ptrdiff_t>(size - length_ - 1));
    }
    return request;
  }

  std::vector<Request> windows(const std::string& text) const {
    const Ids ids = encode(text);
    TITAN_CHECK(!ids.empty(), data, "the text has no tokens");
    std::vector<Request> windows;
    for (size_t first = 0; first < ids.size(); first += length_) {
      const size_t end = std::min(first + length_, ids.size());
      // as much of the preceding text as fits
      const size_t begin = first == 0 ? 0 : end - length_ - 1;
      const auto at = [&](size_t i) { return ids.begin() + static_cast<std::ptrdiff_t>(i); };
      Request& window = windows.emplace_back();
      window.context = first == 0 ? Ids{prefix()} : Ids(at(begin), at(first));
      window.target.assign(at(first), at(end));
    }
    return windows;
  }

 private:
  int32_t prefix() const { return special_.bos ? *special_.bos : *special_.eos; }

  Ids encode(std::string_view text) const {
    Ids ids;
    if (rules_.adds_bos && special_.bos) ids.push_back(*special_.bos);
    tokenizer_.encode(text, ids);
    return ids;
  }

  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  TokenRules rules_;
  size_t length_;
};

}  // namespace

bool adds_bos(const std::filesystem::path& assets) {
  const auto read = [&](const char* name) {
    const auto file = assets / name;
    return std::filesystem::is_regular_file(file) ? read_json(file) : Value();
  };
  const Value tokenizer = read("tokenizer.json");
  if (!tokenizer.is_null()) {
    const Value* processor = tokenizer.find("post_processor");
    return processor && begins_with_special(*processor);
  }
  const Value config = read("tokenizer_config.json");
  const Value* said = config.find("add_bos_token");
  return !said || !said->is_boolean() || said->as_boolean();
}

std::vector<Request> make_requests(const std::vector<Task>& tasks, const Tokenizer& tokenizer,
                                   const TokenRules& rules) {
  const RequestMaker maker(tokenizer, rules);
  Diagnostics wrong;
  std::vector<Request> all;
  for (size_t task = 0; task < tasks.size(); ++task)
    for (size_t number = 0; number < tasks[task].documents.size(); ++number) {
      const TaskDocument& document = tasks[task].documents[number];
      const bool is_rolling = tasks[task].kind() == TaskKind::loglikelihood_rolling;
      for (size_t i = 0; i < document.continuations.size(); ++i) try {
          const std::string& text = document.continuations[i];
          std::vector<Request> made =
              is_rolling ? maker.windows(text) : std::vector{maker.pair(document.context, text)};
          for (Request& request : made) {
            request.task = task;
            request.document = number;
            request.continuation = i;
            all.push_back(std::move(request));
          }
        } catch (const Error& e) {
          add_mistake(wrong, document.place + ": " + e.message());
        }
    }
  if (!wrong.can_start()) throw ConfigError(wrong);
  return all;
}

}  // namespace titan::evaluation
