// Hand-written scanners for the patterns that most models use. Used by make_regex_pattern. Each
// finds exactly the matches of the regex, many times faster; tests compare them with PCRE2.
#pragma once

#include <memory>
#include <string_view>

#include "pattern.h"

namespace titan::bpe {

/// GPT-2, also used by the ByteLevel pre-tokenizer.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// Llama 3 (and cl100k): digits in groups of up to three.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// cl100k as tiktoken writes it now; white space at the end of a text is one piece. In Rust's
/// dialect only.
inline constexpr std::string_view kCl100kPattern =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
/// Qwen 2 and 3: single digits.
inline constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// o200k, GPT-OSS: words are also cut where lower case turns to upper case.
inline constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Tekken (Mistral): o200k with single digits and without contractions.
inline constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Used by the Digits pre-tokenizer.
inline constexpr std::string_view kNumberPattern = R"(\p{N})";
/// The three steps of DeepSeek V3; the class of the second one holds literal characters.
inline constexpr std::string_view kDeepseekDigitsPattern = R"(\p{N}{1,3})";
inline constexpr std::string_view kDeepseekCjkPattern =
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
inline constexpr std::string_view kDeepseekPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The steps of DeepSeek V2, in addition to single digits.
inline constexpr std::string_view kDeepseekV2NewlinePattern = R"([\r\n])";
inline constexpr std::string_view kDeepseekV2LetterPattern = R"(\s?\p{L}+)";
inline constexpr std::string_view kDeepseekV2PunctuationPattern = R"(\s?\p{P}+)";
inline constexpr std::string_view kDeepseekV2CjkPattern =
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";

/// The scanner for exactly this pattern text, or null.
std::unique_ptr<Pattern> make_scanner(std::string_view pattern, Dialect dialect);

}  // namespace titan::bpe
