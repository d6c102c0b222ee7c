// Values as in transformers 5 (models/*/tokenization_*.py, models/auto/tokenization_auto.py), for
// byte-pair classes of models that generate text; tests/referee/tokenizer_referee.py compares.
#include "tokenizer_class.h"

#include <algorithm>
#include <iterator>

namespace titan::huggingface {
namespace {

struct ClassTokens {
  std::string_view name, bos, eos, unk, pad, cls, sep, mask;
};
constexpr ClassTokens kClasses[] = {
    {.name = "CodeLlamaTokenizer", .bos = "<s>", .eos = "</s>", .unk = "<unk>"},
    {.name = "CohereTokenizer",
     .bos = "<BOS_TOKEN>",
     .eos = "<|END_OF_TURN_TOKEN|>",
     .unk = "<UNK>",
     .pad = "<PAD>",
     .cls = "<CLS>",
     .sep = "<SEP>",
     .mask = "<MASK_TOKEN>"},
    {.name = "GPT2Tokenizer",
     .bos = "<|endoftext|>",
     .eos = "<|endoftext|>",
     .unk = "<|endoftext|>"},
    {.name = "GPTNeoXTokenizer",
     .bos = "<|endoftext|>",
     .eos = "<|endoftext|>",
     .unk = "<|endoftext|>",
     .pad = "<|padding|>"},
    {.name = "GemmaTokenizer",
     .bos = "<bos>",
     .eos = "<eos>",
     .unk = "<unk>",
     .pad = "<pad>",
     .mask = "<mask>"},
    {.name = "LlamaTokenizer", .bos = "<s>", .eos = "</s>", .unk = "<unk>"},
    {.name = "Qwen2Tokenizer",
     .eos = "<|endoftext|>",
     .unk = "<|endoftext|>",
     .pad = "<|endoftext|>"},
};

struct ModelType {
  std::string_view name, tokenizer_class;  // no class: ignores the folder's
};
constexpr ModelType kModelTypes[] = {
    {"codegen", "GPT2Tokenizer"},
    {"code_llama", "CodeLlamaTokenizer"},
    {"cohere", "CohereTokenizer"},
    {"cohere2", "CohereTokenizer"},
    {"dbrx", "GPT2Tokenizer"},
    {"falcon_mamba", "GPTNeoXTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"glm4", ""},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_bigcode", ""},
    {"gpt_neo", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"gptj", "GPT2Tokenizer"},
    {"granite", ""},
    {"mamba", "GPTNeoXTokenizer"},
    {"mamba2", "GPTNeoXTokenizer"},
    {"ministral", ""},
    {"mistral", ""},
    {"mixtral", ""},
    {"mpt", "GPTNeoXTokenizer"},
    {"olmo", "GPTNeoXTokenizer"},
    {"olmo2", ""},
    {"olmo3", ""},
    {"olmoe", "GPTNeoXTokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"phi", "GPT2Tokenizer"},
    {"phi3", ""},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"qwen3_next", "Qwen2Tokenizer"},
    {"rwkv", "GPTNeoXTokenizer"},
    {"stablelm", ""},
    {"starcoder2", "GPT2Tokenizer"},
};

}  // namespace

std::string tokenizer_class_of(std::string_view named, std::string_view model_type,
                               bool is_byte_level) {
  if (named.ends_with("Fast")) named.remove_suffix(4);
  const auto* type = std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                                  [&](const ModelType& each) { return each.name == model_type; });
  const bool is_known = type != std::end(kModelTypes);
  if (named.empty()) return std::string(is_known ? type->tokenizer_class : "");
  if (model_type == "qwen2") return std::string(type->tokenizer_class);  // ignores `named`
  // folders of Llama 3 name the class of Llama 2
  if (named == "LlamaTokenizer" && is_byte_level) return "";
  if (is_known && type->tokenizer_class.empty()) return "";
  return std::string(named);
}

std::string_view token_of_class(std::string_view tokenizer_class, std::string_view field) {
  for (const ClassTokens& each : kClasses) {
    if (each.name != tokenizer_class) continue;
    if (field == "bos_token") return each.bos;
    if (field == "eos_token") return each.eos;
    if (field == "unk_token") return each.unk;
    if (field == "pad_token") return each.pad;
    if (field == "cls_token") return each.cls;
    if (field == "sep_token") return each.sep;
    if (field == "mask_token") return each.mask;
  }
  return {};
}

}  // namespace titan::huggingface
