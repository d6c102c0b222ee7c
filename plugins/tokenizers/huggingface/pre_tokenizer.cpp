#include "pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "scanner.h"

namespace titan::huggingface {
namespace {

constexpr const char* kSupported = "Sequence, Split, Digits, ByteLevel";

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior read_behavior(const JsonView& view) {
  const std::string name = view.text();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  view.fail(detail::concat("unknown behavior '", name, "'; known: Removed, Isolated, ",
                           "MergedWithPrevious, MergedWithNext, Contiguous"));
}

// Joins and drops parts as the behavior says while they come in; holds back one part at most.
// A part is "hit" if it matches the pattern, or, with invert, if it does not.
class SplitSink final : public MatchSink {
 public:
  SplitSink(std::string_view text, Behavior behavior, bool invert, PieceSink& sink)
      : text_(text), behavior_(behavior), invert_(invert), sink_(sink) {}

  void match(size_t begin, size_t end) override {
    if (begin != at_) part(at_, begin, invert_);
    part(begin, end, !invert_);
    at_ = end;
  }
  void finish() {
    if (at_ != text_.size()) part(at_, text_.size(), invert_);
    flush();
  }

 private:
  void part(size_t begin, size_t end, bool hit) {
    switch (behavior_) {
      case Behavior::removed:
        if (!hit) give(begin, end);
        return;
      case Behavior::isolated:
        give(begin, end);
        return;
      case Behavior::contiguous:
        join_if(hit == held_hit_, begin, end);
        break;
      case Behavior::merged_with_previous:
        join_if(hit && !held_hit_, begin, end);
        break;
      case Behavior::merged_with_next:
        join_if(!hit && held_hit_, begin, end);
        break;
    }
    held_hit_ = hit;
  }
  // The held part, if any, ends where this one begins.
  void join_if(bool join, size_t begin, size_t end) {
    if (!join || held_begin_ == held_end_) {
      flush();
      held_begin_ = begin;
    }
    held_end_ = end;
  }
  void flush() {
    give(held_begin_, held_end_);
    held_begin_ = held_end_;
  }
  void give(size_t begin, size_t end) {
    if (begin != end) sink_.piece(text_.substr(begin, end - begin));
  }

  std::string_view text_;
  Behavior behavior_;
  bool invert_;
  PieceSink& sink_;
  size_t at_ = 0;
  size_t held_begin_ = 0;
  size_t held_end_ = 0;
  bool held_hit_ = false;
};

class SplitStep final : public PreTokenizerStep {
 public:
  SplitStep(std::unique_ptr<Pattern> pattern, Behavior behavior, bool invert = false)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::string_view text, RegexScratch& scratch, PieceSink& sink) const override {
    SplitSink parts(text, behavior_, invert_, sink);
    pattern_->find_all(text, scratch, parts);
    parts.finish();
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

// ByteLevel's add_prefix_space.
class PrefixSpaceStep final : public PreTokenizerStep {
 public:
  void split(std::string_view text, RegexScratch&, PieceSink& sink) const override {
    if (text.starts_with(' ')) return sink.piece(text);
    std::string spaced;
    spaced.reserve(text.size() + 1);
    spaced.append(1, ' ').append(text);
    sink.piece(spaced);
  }
};

}  // namespace

PreTokenizer::PreTokenizer(const std::optional<JsonView>& view, const JsonView& document) {
  if (view) read_component(*view);
  if (ends_in_byte_level_) return;
  const JsonView place = view ? *view : JsonView(document.json(), document.file(), "pre_tokenizer");
  place.fail(
      "there is no ByteLevel at the end; only byte-level tokenizers (GPT-2, Llama 3, Qwen) "
      "are supported");
}

void PreTokenizer::read_component(const JsonView& view) {
  const std::string type = view.at("type").text();
  if (ends_in_byte_level_) {
    view.fail("'" + type + "' after ByteLevel is not supported; ByteLevel must be the last");
  }
  if (type == "Sequence") {
    view.allow_only({"type", "pretokenizers"});
    for (const JsonView& item : view.at("pretokenizers").items()) read_component(item);
  } else if (type == "Split") {
    view.allow_only({"type", "pattern", "behavior", "invert"});
    steps_.push_back(std::make_unique<SplitStep>(read_pattern(view.at("pattern")),
                                                 read_behavior(view.at("behavior")),
                                                 view.flag_or("invert", false)));
  } else if (type == "Digits") {
    view.allow_only({"type", "individual_digits"});
    const bool individual = view.flag_or("individual_digits", false);
    steps_.push_back(std::make_unique<SplitStep>(
        make_pcre2_pattern("\\p{N}"), individual ? Behavior::isolated : Behavior::contiguous));
  } else if (type == "ByteLevel") {
    view.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (view.flag_or("add_prefix_space", true)) {
      steps_.push_back(std::make_unique<PrefixSpaceStep>());
    }
    if (view.flag_or("use_regex", true)) {
      steps_.push_back(std::make_unique<SplitStep>(make_regex_pattern(std::string(kGpt2Pattern)),
                                                   Behavior::isolated));
    }
    ends_in_byte_level_ = true;
  } else {
    view.fail_unsupported_type(kSupported);
  }
}

void PreTokenizer::split(std::string_view text, RegexScratch& scratch, PieceSink& sink) const {
  run(0, text, scratch, sink);
}

void PreTokenizer::run(size_t step, std::string_view text, RegexScratch& scratch,
                       PieceSink& sink) const {
  if (step == steps_.size()) return sink.piece(text);
  if (step + 1 == steps_.size()) return steps_[step]->split(text, scratch, sink);
  struct Next final : PieceSink {
    Next(const PreTokenizer& c, size_t n, RegexScratch& s, PieceSink& l)
        : chain(c), step(n), scratch(s), last(l) {}
    void piece(std::string_view part) override { chain.run(step, part, scratch, last); }
    const PreTokenizer& chain;
    size_t step;
    RegexScratch& scratch;
    PieceSink& last;
  } next(*this, step + 1, scratch, sink);
  steps_[step]->split(text, scratch, next);
}

}  // namespace titan::huggingface
