// `titan generate`: generates text from a checkpoint or a Hugging Face folder, under any layout.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include <titan/command.h>
#include <titan/engine.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "prompts.h"

namespace titan::commands {
namespace {

struct GenerateOptions : RankFlags {
  std::filesystem::path checkpoint, prompts;
  std::vector<std::string> prompt, stop;
  bool chat = false, ignore_eos = false, no_cache = false, json = false;
  int64_t max_new_tokens = 64, num_samples = 1, batch_size = 16, seed = 0;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p, min_p;
  double repetition_penalty = 1;
};

/// Throws a config Error that lists all invalid combinations of flags.
void check(const GenerateOptions& options) {
  std::string wrong;
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) wrong += (wrong.empty() ? "" : "\n") + what;
  };
  require(!options.checkpoint.empty(),
          "titan generate needs --checkpoint FOLDER; see: titan generate --help");
  require(options.temperature || options.num_samples == 1,
          "--num-samples above 1 needs a --temperature: without it all samples are equal");
  const std::string needs = " needs a --temperature";
  require(options.temperature || !options.top_k, "--top-k" + needs);
  require(options.temperature || !options.top_p, "--top-p" + needs);
  require(options.temperature || !options.min_p, "--min-p" + needs);
  require(std::none_of(options.stop.begin(), options.stop.end(),
                       [](const std::string& word) { return word.empty(); }),
          "--stop is empty");
  TITAN_CHECK(wrong.empty(), config, wrong);
}

std::vector<Prompt> prompts_of(const GenerateOptions& options) {
  std::vector<Prompt> prompts;
  for (const std::string& text : options.prompt)
    prompts.push_back({.text = text, .ids = {}, .place = "--prompt"});
  if (!options.prompts.empty())
    for (Prompt& prompt : read_prompts(options.prompts)) prompts.push_back(std::move(prompt));
  return prompts;
}

GenerationOptions generation_options(const GenerateOptions& options) {
  return {.max_new_tokens = options.max_new_tokens,
          .num_samples = options.num_samples,
          .sampling = {.temperature = options.temperature,
                       .top_k = options.top_k.value_or(0),
                       .top_p = options.top_p.value_or(1),
                       .min_p = options.min_p.value_or(0),
                       .repetition_penalty = options.repetition_penalty},
          .seed = static_cast<uint64_t>(options.seed),
          .end_ids = {},
          .stop = options.stop,
          .uses_cache = !options.no_cache,
          .as_trained = {}};
}

/// Prints on rank 0: streams the text of a single prompt, else prints each result when it is
/// complete.
class Output {
 public:
  Output(const GenerateOptions& options, bool is_rank_zero, bool has_text)
      : is_json_(options.json), is_rank_zero_(is_rank_zero), has_text_(has_text) {}

  TextListener listener(bool is_alone) {
    streams_ = is_alone && !is_json_ && is_rank_zero_;
    if (!streams_) return {};
    return [](size_t, const std::string& text) {
      print(text);
      std::fflush(stdout);
    };
  }
  void show(const Generated& result, const std::vector<int32_t>& prompt) const {
    if (!is_rank_zero_) return;
    if (is_json_)
      print_json(to_json(Value::map({{"prompt", static_cast<int64_t>(result.prompt)},
                                     {"prompt_ids", listed(prompt)},
                                     {"ids", listed(result.ids)},
                                     {"text", result.text}})) +
                 "\n");
    else if (!has_text_)
      print(to_json(listed(result.ids)) + "\n");
    else
      print(streams_ ? "\n" : result.text + "\n");
    std::fflush(stdout);
  }

 private:
  static Value listed(const std::vector<int32_t>& ids) {
    Value list = Value::list();
    for (const int32_t id : ids) list.as_list().emplace_back(int64_t{id});
    return list;
  }
  bool is_json_, is_rank_zero_, has_text_, streams_ = false;
};

using PromptIds = std::vector<std::vector<int32_t>>;

class Generate final : public Command {
 public:
  static constexpr CommandWords kWords{.most = SIZE_MAX, .takes_job = true};

  Generate(const GenerateOptions& options, const CommandContext& context)
      : options_(options), context_(context), generation_(generation_options(options)) {}

  int run() override {
    check(options_);
    const std::vector<Prompt> prompts = prompts_of(options_);
    model_ = context_.engines->open(
        {.command = "titan generate", .job = context_.words, .ranks = options_},
        options_.checkpoint, options_.chat);
    engine_ = &model_->engine();
    const PromptIds given = checked_ids(prompts);
    model_->with_ranks([&] { generate_all(given); });
    return kExitDone;
  }

 private:
  PromptIds checked_ids(const std::vector<Prompt>& prompts) const;
  std::string run_prompts(const PromptIds& ids, Generator& generator, Output& output) const;
  std::optional<std::string> next_line(int64_t number) const;
  void converse(Generator& generator, Output& output) const;
  void generate_all(const PromptIds& given);

  GenerateOptions options_;
  CommandContext context_;
  GenerationOptions generation_;
  std::unique_ptr<OpenedModel> model_;
  Engine* engine_ = nullptr;
};

PromptIds Generate::checked_ids(const std::vector<Prompt>& prompts) const {
  return prompt_ids(prompts, engine_->tokenizer(), engine_->chat(),
                    {.context = engine_->context(),
                     .max_new_tokens = options_.max_new_tokens,
                     .vocab_size = engine_->model().vocab_size()});
}

/// Returns the last text.
std::string Generate::run_prompts(const PromptIds& ids, Generator& generator,
                                  Output& output) const {
  std::string last;
  const auto at_once =
      static_cast<size_t>(std::max<int64_t>(1, options_.batch_size / options_.num_samples));
  for (size_t first = 0; first < ids.size(); first += at_once) {
    const size_t count = std::min(at_once, ids.size() - first);
    GenerationOptions options = generation_;
    options.seed += first * static_cast<size_t>(options.num_samples);
    const bool is_alone = ids.size() == 1 && options.num_samples == 1 && engine_->tokenizer();
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    for (Generated& result : generator.generate({begin, begin + static_cast<std::ptrdiff_t>(count)},
                                                options, output.listener(is_alone))) {
      result.prompt += first;
      output.show(result, ids[result.prompt]);
      last = result.text;
    }
  }
  return last;
}

/// The next line of rank 0's standard input, on every rank; none at its end.
std::optional<std::string> Generate::next_line(int64_t number) const {
  Value line;
  if (engine_->mesh().rank() == 0) {
    std::string text;
    if (std::getline(std::cin, text)) line = text;
  }
  line = parse_json(engine_->from_rank_zero("prompt " + std::to_string(number), to_json(line)));
  return line.is_string() ? std::optional(line.as_string()) : std::nullopt;
}

/// Chats with the user at rank 0's terminal; every rank computes the same answers.
void Generate::converse(Generator& generator, Output& output) const {
  const Value none;  // GCC 12 warns of uninitialised parts when a temporary is moved here
  Value conversation = none;
  for (int64_t number = 1; const auto line = next_line(number); ++number) {
    if (line->empty()) {
      conversation = none;
      continue;
    }
    const Value said = conversation_of(*line);
    if (conversation.is_null())
      conversation = said;
    else
      conversation["messages"].as_list().push_back(said.at("messages").as_list()[0]);
    const PromptIds ids = checked_ids({{.text = "",
                                        .ids = {},
                                        .conversation = conversation,
                                        .place = "line " + std::to_string(number)}});
    const std::string answer = engine_->from_rank_zero("answer " + std::to_string(number),
                                                       run_prompts(ids, generator, output));
    conversation["messages"].as_list().push_back(
        Value::map({{"role", "assistant"}, {"content", answer}}));
  }
}

/// `given`: prompts of the flags.
void Generate::generate_all(const PromptIds& given) {
  if (!options_.ignore_eos) generation_.end_ids = engine_->end_ids();
  Generator generator = engine_->generator();
  const bool is_rank_zero = engine_->mesh().rank() == 0;
  Output output(options_, is_rank_zero, engine_->tokenizer() != nullptr);
  const double begin = monotonic_seconds();
  if (!given.empty()) {
    run_prompts(given, generator, output);
  } else if (options_.chat) {
    converse(generator, output);
  } else {
    for (int64_t number = 1; const auto line = next_line(number); ++number)
      if (!line->empty())
        run_prompts(
            checked_ids({{.text = *line, .ids = {}, .place = "line " + std::to_string(number)}}),
            generator, output);
  }
  const double seconds = monotonic_seconds() - begin;
  char text[160];
  std::snprintf(text, sizeof text, "%lld tokens after %lld of prompts in %.3f s: %.1f tokens/s",
                static_cast<long long>(generator.num_new_tokens()),
                static_cast<long long>(generator.num_prompt_tokens()), seconds,
                static_cast<double>(generator.num_new_tokens()) / seconds);
  if (is_rank_zero) log::info(text);
}

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Generate;
  using Options = titan::commands::GenerateOptions;
  auto& command =
      plugin.add<Generate>("generate", "generate text from a checkpoint or Hugging Face folder")
          .option("checkpoint", &Options::checkpoint,
                  "a Titan checkpoint, a folder of checkpoints (the newest one), or a Hugging Face "
                  "folder, whose config.json determines the model")
          .option("prompt", &Options::prompt, "text to continue; may be given several times")
          .option("prompts", &Options::prompts,
                  "file with a prompt per line; *.jsonl: {\"prompt\": TEXT} or {\"prompt_ids\": "
                  "[...]}; "
                  "without --prompt and --prompts: each line of standard input")
          .option(
              "chat", &Options::chat,
              "render prompts with the chat template, as messages of a user or conversations, "
              "{\"messages\": [...]}; lines of standard input continue a conversation, an empty "
              "line begins a new one")
          .option("max_new_tokens", &Options::max_new_tokens,
                  "maximum number of new tokens per prompt")
          .at_least(1)
          .option("temperature", &Options::temperature,
                  "sample with this temperature; unset: take the most likely token")
          .greater_than(0)
          .option("top_k", &Options::top_k, "sample from the K most likely tokens; 0: from all")
          .at_least(0)
          .option("top_p", &Options::top_p,
                  "sample from the most likely tokens whose probabilities add up to P")
          .greater_than(0)
          .at_most(1)
          .option("min_p", &Options::min_p,
                  "sample from tokens with at least P times the probability of the most likely one")
          .at_least(0)
          .less_than(1)
          .option("repetition_penalty", &Options::repetition_penalty,
                  "above 1: penalize tokens that already occurred")
          .greater_than(0)
          .option("seed", &Options::seed, "seed of the sampling")
          .at_least(0)
          .option("num_samples", &Options::num_samples, "samples per prompt")
          .at_least(1)
          .option("stop", &Options::stop, "end the text before this; may be given several times")
          .option("ignore_eos", &Options::ignore_eos,
                  "continue after the model's end-of-text token")
          .option("batch_size", &Options::batch_size, "sequences computed at once")
          .at_least(1)
          .option("no_cache", &Options::no_cache,
                  "recompute all tokens in every step, for comparison")
          .option("json", &Options::json, "print one JSON object per line: prompt_ids, ids, text");
  titan::declare_rank_flags<Options>(command);
}
