#include "pre_tokenizer.h"

#include <utility>

#include <titan/error.h>

#include "../common/make_pattern.h"
#include "../common/scanner.h"
#include "json_parts.h"
#include "pre_tokenizer_steps.h"

namespace titan::huggingface {
namespace {

constexpr const char* kSupportedPreTokenizers =
    "null, Sequence, Split, Digits, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Punctuation";

SplitBehavior read_behavior(const JsonView& view) {
  const std::string name = view.text();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  view.fail(detail::concat("unknown behavior '", name, "'; known: Removed, Isolated, ",
                           "MergedWithPrevious, MergedWithNext, Contiguous"));
}

std::unique_ptr<bpe::Pattern> regex(std::string_view pattern) {
  return bpe::make_regex_pattern(std::string(pattern), bpe::Dialect::oniguruma);
}

std::unique_ptr<PreTokenizerStep> read_split(const JsonView& view) {
  view.allow_only({"type", "pattern", "behavior", "invert"});
  return make_split_step(read_pattern(view.at("pattern")), read_behavior(view.at("behavior")),
                         view.flag_or("invert", false));
}

std::unique_ptr<PreTokenizerStep> read_digits(const JsonView& view) {
  view.allow_only({"type", "individual_digits"});
  const bool individual = view.flag_or("individual_digits", false);
  return make_split_step(regex(bpe::kNumberPattern),
                         individual ? SplitBehavior::isolated : SplitBehavior::contiguous, false);
}

std::unique_ptr<PreTokenizerStep> read_punctuation(const JsonView& view) {
  view.allow_only({"type", "behavior"});
  const std::optional<JsonView> behavior = view.find("behavior");
  return make_split_step(make_punctuation_pattern(),
                         behavior ? read_behavior(*behavior) : SplitBehavior::isolated, false);
}

}  // namespace

PrependScheme read_prepend_scheme(const JsonView& metaspace) {
  PrependScheme result = PrependScheme::always;
  if (const std::optional<JsonView> scheme = metaspace.find("prepend_scheme")) {
    const std::string name = scheme->text();
    if (name != "always" && name != "first" && name != "never") {
      scheme->fail("unknown scheme '" + name + "'; known: always, first, never");
    }
    result = name == "first"   ? PrependScheme::first
             : name == "never" ? PrependScheme::never
                               : PrependScheme::always;
  }
  // older name of the same option; files may have both
  if (!metaspace.flag_or("add_prefix_space", true) && result != PrependScheme::never) {
    metaspace.at("add_prefix_space")
        .fail("false contradicts prepend_scheme; set prepend_scheme to \"never\"");
  }
  return result;
}

PreTokenizer::PreTokenizer(const std::optional<JsonView>& view) {
  if (!view) return;
  read_component(*view);
  // steps call each other recursively
  constexpr size_t kMaxSteps = 64;
  if (steps_.size() > kMaxSteps) {
    view->fail(detail::concat("has ", steps_.size(), " steps; the limit is ", kMaxSteps));
  }
}

void PreTokenizer::read_byte_level(const JsonView& view) {
  view.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (view.flag_or("add_prefix_space", true)) steps_.push_back(make_prefix_space_step());
  if (view.flag_or("use_regex", true)) {
    steps_.push_back(make_split_step(regex(bpe::kGpt2Pattern), SplitBehavior::isolated, false));
  }
  is_byte_level_ = true;
}

void PreTokenizer::add_cuts(std::unique_ptr<PreTokenizerStep> step) {
  steps_.push_back(is_byte_level_ ? make_alphabet_step(std::move(step)) : std::move(step));
}

void PreTokenizer::read_component(const JsonView& view) {
  const std::string type = view.at("type").text();
  if (is_byte_level_ && (type == "ByteLevel" || type == "Metaspace")) {
    view.fail("'" + type + "' after ByteLevel is not supported: it would change the bytes");
  }
  if (type == "Sequence") {
    view.allow_only({"type", "pretokenizers"});
    for (const JsonView& item : view.at("pretokenizers").items()) read_component(item);
  } else if (type == "Split") {
    add_cuts(read_split(view));
  } else if (type == "Digits") {
    add_cuts(read_digits(view));
  } else if (type == "ByteLevel") {
    read_byte_level(view);
  } else if (type == "Metaspace") {
    view.allow_only(
        {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    steps_.push_back(make_metaspace_step(read_character(view.at("replacement")),
                                         read_prepend_scheme(view), view.flag_or("split", true)));
  } else if (type == "Whitespace") {
    view.allow_only({"type"});
    add_cuts(make_split_step(make_word_or_sign_pattern(), SplitBehavior::removed, true));
  } else if (type == "WhitespaceSplit") {
    view.allow_only({"type"});
    add_cuts(make_split_step(make_white_space_pattern(), SplitBehavior::removed, false));
  } else if (type == "Punctuation") {
    add_cuts(read_punctuation(view));
  } else {
    view.fail_unsupported_type(kSupportedPreTokenizers);
  }
}

void PreTokenizer::split(const Piece& piece, PreTokenizerScratch& scratch, PieceSink& sink) const {
  if (scratch.texts.size() < steps_.size()) scratch.texts.resize(steps_.size());
  if (!piece.text.empty()) run(0, piece, scratch, sink);
}

void PreTokenizer::run(size_t step, const Piece& piece, PreTokenizerScratch& scratch,
                       PieceSink& sink) const {
  if (step == steps_.size()) return sink.piece(piece);
  const StepScratch own{scratch.regex, scratch.texts[step]};
  if (step + 1 == steps_.size()) return steps_[step]->split(piece, own, sink);
  struct Next final : PieceSink {
    Next(const PreTokenizer& c, size_t n, PreTokenizerScratch& s, PieceSink& l)
        : chain(c), step(n), scratch(s), last(l) {}
    void piece(const Piece& part) override { chain.run(step, part, scratch, last); }
    const PreTokenizer& chain;
    size_t step;
    PreTokenizerScratch& scratch;
    PieceSink& last;
  } next(*this, step + 1, scratch, sink);
  steps_[step]->split(piece, own, next);
}

}  // namespace titan::huggingface
