#include "core/data/row_reader.h"

#include <algorithm>

#include <titan/error.h>

#include "core/data/order/saved_position.h"

namespace titan::core {
namespace {

/// Consecutive empty documents tolerated in any source.
constexpr int64_t kMaxEmpty = 10000;

}  // namespace

RowReader::RowReader(std::vector<BlendedReader> sources, const Tokenizer& tokenizer,
                     int64_t vocab_size, ConversationOptions conversations)
    : tokenizer_(tokenizer),
      framing_(framing_of(tokenizer)),
      vocab_size_(vocab_size),
      conversations_(std::move(conversations)),
      conversation_tokens_(tokenizer, conversations_.chat_template) {
  if (!conversations_.skipped) conversations_.skipped = std::make_shared<SkippedDocuments>();
  double sum = 0;
  for (const BlendedReader& source : sources) sum += source.weight;
  for (BlendedReader& source : sources) {
    source.weight /= sum;
    sources_.push_back({std::move(source)});
  }
}

/// The source that is furthest below its share. Ties go to the larger weight, then to the source
/// that is named first. Null: all have ended.
RowReader::Source* RowReader::most_underserved() {
  const auto total = static_cast<double>(tokens_read_);
  const auto shortfall = [&](const Source& source) {
    return source.blended.weight * total - static_cast<double>(source.tokens_read);
  };
  Source* most = nullptr;
  for (Source& source : sources_) {
    if (source.has_ended) continue;
    const bool is_more =
        !most || shortfall(source) > shortfall(*most) ||
        (shortfall(source) == shortfall(*most) && source.blended.weight > most->blended.weight);
    if (is_more) most = &source;
  }
  return most;
}

bool RowReader::next(TokenizedDocument& document) {
  while (Source* source = most_underserved()) {
    reading_.store(static_cast<size_t>(source - sources_.data()), std::memory_order_relaxed);
    try {
      if (read(*source, document)) return true;
    } catch (Error& e) {
      throw e.with_context("while reading source '" + source->blended.name + "'");
    }
    source->has_ended = true;
  }
  return false;
}

void RowReader::leave_out(size_t source, const std::string& what) const {
  const BlendedReader& blended = sources_[source].blended;
  conversations_.skipped->add(blended.name, what, blended.reader->place());
}

bool RowReader::read(Source& source, TokenizedDocument& document) {
  const int64_t first_epoch = source.blended.reader->epoch();
  int64_t num_empty = 0;
  do {
    TITAN_CHECK(num_empty++ < kMaxEmpty || source.blended.reader->epoch() <= first_epoch + 1, data,
                "the documents of a whole epoch hold no token",
                document_.conversations.empty()
                    ? ""
                    : " to learn, or are all longer than a sequence; data.too_long drops these: "
                      "make training.seq_len longer, or choose \"truncate\"");
    if (!source.blended.reader->next(document_)) return false;
    tokenise(source, document);
  } while (document.tokens.empty());
  check_ids(source, document.tokens);
  document.source = static_cast<size_t>(&source - sources_.data());
  document.epoch = source.blended.reader->epoch();
  const auto num_tokens = static_cast<int64_t>(document.tokens.size());
  source.tokens_read += num_tokens;
  tokens_read_ += num_tokens;
  return true;
}

void RowReader::tokenise(const Source& source, TokenizedDocument& document) {
  document.tokens.clear();
  document.is_target.clear();
  document.starts.clear();
  document.num_bytes = 0;
  if (!document_.conversations.empty()) {
    read_conversations(source, document);
    return;
  }
  append_tokens(document_, tokenizer_, framing_, document.tokens);
  if (!document_.is_tokenised) document.num_bytes = static_cast<double>(document_.text.size());
}

/// Tokenizes conversations; `document` has no tokens if it is left out.
void RowReader::read_conversations(const Source& source, TokenizedDocument& document) const {
  const std::string place = source.blended.reader->place();
  TITAN_CHECK(
      conversations_.max_tokens > 0, data, place,
      ": conversations must not be split or attend to each other; set data.packing = \"best_fit\" "
      "and data.isolate_documents = true");
  try {
    for (const Conversation& conversation : document_.conversations)
      conversation_tokens_.append(conversation, document);
  } catch (Error& e) {
    throw e.with_context("in the conversation at " + place);
  }
  if (!fit(source, document)) {
    document.tokens.clear();
    return;
  }
  for (size_t i = 0; i < document.starts.size(); ++i) {
    const auto begin = document.is_target.begin() + document.starts[i];
    const auto end = i + 1 < document.starts.size()
                         ? document.is_target.begin() + document.starts[i + 1]
                         : document.is_target.end();
    if (std::find(begin, end, uint8_t{1}) != end) continue;
    conversations_.skipped->add(source.blended.name, "left out, with nothing to learn", place);
    document.tokens.clear();
    return;
  }
}

/// Applies data.too_long; false when the document is left out.
bool RowReader::fit(const Source& source, TokenizedDocument& document) const {
  const auto most = static_cast<size_t>(conversations_.max_tokens);
  if (document.tokens.size() <= most) return true;
  const std::string place = source.blended.reader->place();
  const std::string why = "longer than a sequence (" + std::to_string(most) + " tokens)";
  const bool belong_together = document.starts.size() > 1;
  TITAN_CHECK(conversations_.too_long != TooLong::error, data, place, ": the ",
              belong_together ? "two conversations have " : "conversation has ",
              document.tokens.size(), " tokens", belong_together ? " together" : "",
              ", more than the ", most,
              " that fit training.seq_len; make that longer, or choose data.too_long = "
              "\"skip\" or \"truncate\"");
  if (conversations_.too_long == TooLong::skip || belong_together) {
    conversations_.skipped->add(source.blended.name, "left out, " + why, place);
    return false;
  }
  conversations_.skipped->add(source.blended.name, "truncated, " + why, place);
  const auto learned = [&] {
    return static_cast<double>(
        std::count(document.is_target.begin(), document.is_target.end(), uint8_t{1}));
  };
  const double before = learned();
  document.tokens.resize(most);
  document.is_target.resize(most);
  if (before > 0) document.num_bytes *= learned() / before;
  return true;
}

void RowReader::check_ids(const Source& source, const std::vector<int32_t>& tokens) const {
  const auto [lowest, highest] = std::minmax_element(tokens.begin(), tokens.end());
  if (*lowest >= 0 && *highest < vocab_size_) return;
  const auto wrong = *lowest < 0 ? lowest : highest;
  fail(ErrorKind::data, source.blended.reader->place(), ": token ", *wrong, " at position ",
       wrong - tokens.begin(), " of the document is not an id of the model, which has ",
       vocab_size_, "; was the data made with another tokenizer? See model.vocab_size");
}

Value RowReader::state() const {
  Value::List sources;
  for (const Source& source : sources_)
    sources.push_back(
        Value::map({{"tokens", source.tokens_read}, {"at", source.blended.reader->position()}}));
  return Value(std::move(sources));
}

void RowReader::restore(const Value& state) {
  TITAN_CHECK(state.is_list() && state.as_list().size() == sources_.size(), data,
              "the saved data position is not one of ", sources_.size(), " sources");
  tokens_read_ = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Value& saved = state.as_list()[i];
    sources_[i].tokens_read = saved_integer(saved, "tokens");
    sources_[i].blended.reader->seek(saved_member(saved, "at"));
    sources_[i].has_ended = false;
    tokens_read_ += sources_[i].tokens_read;
  }
}

std::string RowReader::place() const {
  const BlendedReader& source = sources_[reading_.load(std::memory_order_relaxed)].blended;
  return source.reader->place() + " of source '" + source.name + "'";
}

}  // namespace titan::core
