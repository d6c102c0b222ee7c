#include "regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::bpe {

template <auto kFree>
struct PcreFreer {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

namespace {

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

// Backtracking into groups needs stack in proportion to the text; it is reserved, not committed.
constexpr size_t kJitStackStart = 64 * 1024;
constexpr size_t kJitStackLimit = 256 * 1024 * 1024;

}  // namespace

struct RegexScratch::Impl {
  std::unique_ptr<pcre2_match_data, PcreFreer<&pcre2_match_data_free>> data{
      pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, PcreFreer<&pcre2_match_context_free>> context{
      pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, PcreFreer<&pcre2_jit_stack_free>> stack;

  void grow_stack() {
    stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr));
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

RegexScratch::RegexScratch() : impl_(std::make_unique<Impl>()) {}
RegexScratch::~RegexScratch() = default;
RegexScratch::RegexScratch(RegexScratch&&) noexcept = default;

struct Regex::Impl {
  std::string pattern;
  std::unique_ptr<pcre2_code, PcreFreer<&pcre2_code_free>> code;
};

Regex::Regex(std::string_view pattern, Dialect dialect) : impl_(std::make_unique<Impl>()) {
  impl_->pattern = pattern;
  const TranslatedPattern translated = translate_regex(pattern, dialect);
  std::unique_ptr<pcre2_compile_context, PcreFreer<&pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl_->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.text.data()), translated.text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, context.get()));
  if (!impl_->code) {
    const size_t position =
        offset < translated.origin.size() ? translated.origin[offset] : pattern.size();
    throw PatternError(position, pcre2_message(error));
  }
  // Without JIT support for the CPU pcre2_match interprets: slower, same matches.
  pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;

std::optional<Match> Regex::search(std::string_view text, size_t from,
                                   RegexScratch& scratch) const {
  RegexScratch::Impl& s = *scratch.impl_;
  const auto match = [&] {
    return pcre2_match(impl_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                       from, PCRE2_NO_UTF_CHECK, s.data.get(), s.context.get());
  };
  int result = match();
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && !s.stack) {
    s.grow_stack();
    result = match();
  }
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  TITAN_CHECK(result >= 0, data, "the pattern ", in_quotes(impl_->pattern), " failed at byte ",
              from, " of a text of ", text.size(), " bytes: ", pcre2_message(result),
              "; split the text into shorter documents");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(s.data.get());
  return Match{ends[0], ends[1]};
}

}  // namespace titan::bpe
