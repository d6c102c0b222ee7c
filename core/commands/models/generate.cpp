// `titan generate`: text from a model, of a checkpoint or a Hugging Face folder, under any layout.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/terminal.h>

#include "core/commands/models/models.h"
#include "core/commands/models/trained_model.h"
#include "core/commands/own_flags.h"
#include "core/generate/generator.h"
#include "core/generate/prompts.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "usage: titan generate --checkpoint FOLDER [--prompt TEXT]... [--prompts FILE] [OPTION]...\n"
    "                      [--section.key VALUE]...\n"
    "\n"
    "  --checkpoint FOLDER      a step of ours, a folder of steps (the newest), or a Hugging Face\n"
    "                           folder, whose config.json and tokenizer say which model it is\n"
    "  --prompt TEXT            what to go on with; may be given several times\n"
    "  --prompts FILE           a prompt a line; *.jsonl: {\"prompt\": TEXT} or {\"prompt_ids\": "
    "[...]}\n"
    "                           without either: each line of standard input, as it comes\n"
    "  --chat                   prompts are what a user says, or conversations, {\"messages\": "
    "[...]},\n"
    "                           rendered by the model's chat template; lines of standard input\n"
    "                           go on with a conversation, an empty one begins a new one\n"
    "  --max-new-tokens N       at most so many after each prompt (default 64)\n"
    "  --temperature T          draw tokens; without it the most likely one is taken\n"
    "  --top-k K, --top-p P, --min-p P\n"
    "                           draw from the K most likely, from those that make up P, from "
    "those\n"
    "                           of at least P times the most likely one's probability\n"
    "  --repetition-penalty R   above 1: words that were there become less likely\n"
    "  --seed S                 of the draws (default 0)\n"
    "  --num-samples N          of each prompt (default 1)\n"
    "  --stop TEXT              ends the text, itself left out; may be given several times\n"
    "  --ignore-eos             go on after the end of a text\n"
    "  --batch-size N           sequences at once (default 16)\n"
    "  --no-cache               compute every token from the first one on: for comparison\n"
    "  --json                   one object a line: prompt_ids, ids, text\n"
    "  --rank, --world-size, --local-rank, --master\n"
    "                           as of titan train; titan launch -- generate ... starts ranks\n"
    "  --job.config_file FILE, --section.key VALUE\n"
    "                           the model and the layout, as titan train takes them:\n"
    "                           --parallelism.tensor_parallel_degree 2; titan train --help lists\n"
    "                           them\n";

struct GenerateArguments {
  bool help = false, json = false, ignores_eos = false, is_chat = false;
  std::filesystem::path checkpoint;
  std::vector<Prompt> prompts;
  int64_t batch_size = 16;
  GenerationOptions options;
  LaunchFlags launch;
  std::vector<std::string> config;
};

GenerateArguments parse_generate(const std::vector<std::string>& words) {
  po::options_description own("titan generate");
  using Strings = std::vector<std::string>;
  own.add_options()("help", "")("checkpoint", po::value<std::string>(), "")(
      "prompt", po::value<Strings>()->composing(), "")("prompts", po::value<std::string>(), "")(
      "max-new-tokens", po::value<int64_t>(), "")("temperature", po::value<double>(), "")(
      "top-k", po::value<int64_t>(), "")("top-p", po::value<double>(), "")(
      "min-p", po::value<double>(), "")("repetition-penalty", po::value<double>(), "")(
      "seed", po::value<uint64_t>(), "")("num-samples", po::value<int64_t>(), "")(
      "stop", po::value<Strings>()->composing(), "")("ignore-eos", "")("chat", "")(
      "batch-size", po::value<int64_t>(), "")("no-cache", "")("json", "");
  add_launch_flags(own);
  const OwnFlags flags = take_own_flags(words, own, "titan generate");
  const po::variables_map& values = flags.values;
  GenerateArguments result;
  result.help = values.count("help") > 0;
  if (result.help) return result;
  TITAN_CHECK(values.count("checkpoint"), config,
              "titan generate needs --checkpoint FOLDER; see: titan generate --help");
  result.checkpoint = values["checkpoint"].as<std::string>();
  result.json = values.count("json") > 0;
  result.ignores_eos = values.count("ignore-eos") > 0;
  result.is_chat = values.count("chat") > 0;
  if (values.count("prompt"))
    for (const std::string& text : values["prompt"].as<Strings>())
      result.prompts.push_back({.text = text, .ids = {}, .place = "--prompt"});
  take_flag<int64_t>(values, "batch-size", result.batch_size);
  GenerationOptions& options = result.options;
  SamplingOptions& sampling = options.sampling;
  take_flag<int64_t>(values, "max-new-tokens", options.max_new_tokens);
  take_flag<double>(values, "temperature", sampling.temperature);
  take_flag<int64_t>(values, "top-k", sampling.top_k);
  take_flag<double>(values, "top-p", sampling.top_p);
  take_flag<double>(values, "min-p", sampling.min_p);
  take_flag<double>(values, "repetition-penalty", sampling.repetition_penalty);
  take_flag<uint64_t>(values, "seed", options.seed);
  take_flag<int64_t>(values, "num-samples", options.num_samples);
  take_flag<Strings>(values, "stop", options.stop);
  options.uses_cache = values.count("no-cache") == 0;
  result.launch = launch_flags(values);
  result.config = flags.rest;

  std::string wrong;
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) wrong += (wrong.empty() ? "" : "\n") + what;
  };
  require(options.max_new_tokens >= 1, "--max-new-tokens must be >= 1");
  require(!sampling.temperature || *sampling.temperature > 0,
          "--temperature must be > 0; without it the most likely token is taken");
  require(sampling.top_k >= 0, "--top-k must be >= 0 (0: all words)");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "--top-p must be in (0, 1]");
  require(sampling.min_p >= 0 && sampling.min_p < 1, "--min-p must be in [0, 1)");
  require(sampling.repetition_penalty > 0, "--repetition-penalty must be > 0");
  require(options.num_samples >= 1, "--num-samples must be >= 1");
  require(result.batch_size >= 1, "--batch-size must be >= 1");
  require(sampling.temperature || options.num_samples == 1,
          "--num-samples above 1 needs a --temperature: the most likely tokens are the same ones");
  for (const char* name : {"top-k", "top-p", "min-p"})
    require(sampling.temperature || !values.count(name),
            "--" + std::string(name) + " needs a --temperature");
  require(std::none_of(options.stop.begin(), options.stop.end(),
                       [](const std::string& word) { return word.empty(); }),
          "--stop is empty");
  TITAN_CHECK(wrong.empty(), config, wrong);
  if (values.count("prompts"))
    for (Prompt& prompt : read_prompts(values["prompts"].as<std::string>()))
      result.prompts.push_back(std::move(prompt));
  return result;
}

std::set<int32_t> end_ids(const Value& eos) {
  std::set<int32_t> ids;
  if (eos.is_integer()) ids.insert(static_cast<int32_t>(eos.as_integer()));
  if (eos.is_list())
    for (const Value& id : eos.as_list())
      if (id.is_integer()) ids.insert(static_cast<int32_t>(id.as_integer()));
  return ids;
}

/// Prints what rank 0 gets: streams the text of a prompt alone, else each result when it is there.
class Output {
 public:
  Output(const GenerateArguments& arguments, bool is_rank_zero, bool has_text)
      : is_json_(arguments.json), is_rank_zero_(is_rank_zero), has_text_(has_text) {}

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

PromptIds checked_ids(const std::vector<Prompt>& prompts, const GenerateArguments& arguments,
                      const TrainedModel& model) {
  return prompt_ids(prompts, model.tokenizer(), model.chat(),
                    {.context = model.context(),
                     .max_new_tokens = arguments.options.max_new_tokens,
                     .vocab_size = model.model().vocab_size()});
}

/// Gives the last text.
std::string run_prompts(const PromptIds& ids, const GenerateArguments& arguments,
                        const TrainedModel& model, Generator& generator, Output& output) {
  std::string last;
  const auto at_once = static_cast<size_t>(
      std::max<int64_t>(1, arguments.batch_size / arguments.options.num_samples));
  for (size_t first = 0; first < ids.size(); first += at_once) {
    const size_t count = std::min(at_once, ids.size() - first);
    GenerationOptions options = arguments.options;
    options.seed += first * static_cast<size_t>(options.num_samples);
    const bool is_alone = ids.size() == 1 && options.num_samples == 1 && model.tokenizer();
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

/// Lines of rank 0's standard input, one by one; nothing when it has ended.
std::optional<std::string> next_line(Rendezvous& rendezvous, int64_t number) {
  Value told;
  if (rendezvous.launch().rank == 0) {
    std::string line;
    if (std::getline(std::cin, line)) told = line;
  }
  told = parse_json(rendezvous.from_rank_zero("prompt " + std::to_string(number), to_json(told)));
  return told.is_string() ? std::optional(told.as_string()) : std::nullopt;
}

/// What a terminal says and the model answers, on every rank the same.
void converse(const GenerateArguments& arguments, TrainedModel& model, Generator& generator,
              Output& output) {
  Value conversation;
  for (int64_t number = 1; const auto line = next_line(model.rendezvous(), number); ++number) {
    if (line->empty()) {
      conversation = Value();
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
                                        .place = "line " + std::to_string(number)}},
                                      arguments, model);
    const std::string answer = run_prompts(ids, arguments, model, generator, output);
    conversation["messages"].as_list().push_back(
        Value::map({{"role", "assistant"},
                    {"content", model.rendezvous().from_rank_zero(
                                    "answer " + std::to_string(number), answer)}}));
  }
}

/// `given`: those of arguments.prompts.
void generate_all(GenerateArguments& arguments, const PromptIds& given, TrainedModel& model) {
  Run& run = model.run();
  if (!arguments.ignores_eos) arguments.options.end_ids = end_ids(model.token_ids().eos);
  Generator generator(*run.executor, run.mesh, run.device->device(), model.tokenizer(),
                      run.part->num_sequence_cuts());
  Output output(arguments, run.mesh.rank() == 0, model.tokenizer() != nullptr);
  const double begin = monotonic_seconds();
  if (!given.empty()) {
    run_prompts(given, arguments, model, generator, output);
  } else if (arguments.is_chat) {
    converse(arguments, model, generator, output);
  } else {
    for (int64_t number = 1; const auto line = next_line(model.rendezvous(), number); ++number)
      if (!line->empty())
        run_prompts(
            checked_ids({{.text = *line, .ids = {}, .place = "line " + std::to_string(number)}},
                        arguments, model),
            arguments, model, generator, output);
  }
  const double seconds = monotonic_seconds() - begin;
  char text[160];
  std::snprintf(text, sizeof text, "%lld tokens after %lld of prompts in %.3f s: %.1f tokens/s",
                static_cast<long long>(generator.num_new_tokens()),
                static_cast<long long>(generator.num_prompt_tokens()), seconds,
                static_cast<double>(generator.num_new_tokens()) / seconds);
  if (run.mesh.rank() == 0) log::info(text);
}

}  // namespace

int generate_text(const std::vector<std::string>& words) {
  GenerateArguments arguments = parse_generate(words);
  if (arguments.help) {
    print(kUsage);
    return kExitDone;
  }
  TrainedModel model(arguments.checkpoint, arguments.config, arguments.launch,
                     {.command = "titan generate", .is_chat = arguments.is_chat});
  const PromptIds given = checked_ids(arguments.prompts, arguments, model);
  model.with_ranks([&] { generate_all(arguments, given, model); });
  return kExitDone;
}

}  // namespace titan::core
