#include "speculate.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/generation/sampler.h>
#include <titan/ops/few_rows.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/value.h>

#include "future_heads.h"

namespace multi_token {

using namespace titan;  // NOLINT: small
using Ids = std::vector<int32_t>;

namespace {

/// Drafted and accepted tokens by their distance from the last checked token, and forwards.
struct Counts {
  std::vector<int64_t> drafted, accepted;
  int64_t forwards = 0;
};

class Drafter {
 public:
  Drafter(Engine& engine, FutureHeads& heads, std::set<int32_t> end_ids)
      : engine_(engine), heads_(heads), end_ids_(std::move(end_ids)) {
    counts_.drafted.assign(static_cast<size_t>(heads.count()), 0);
    counts_.accepted = counts_.drafted;
  }

  /// The tokens after `prompt`, which are those of greedy decoding.
  Ids generate(const Ids& prompt, int64_t most) {
    const auto size = static_cast<int64_t>(prompt.size()), width = heads_.count();
    const ops::FewRowsScope few_rows;  // a row's bits do not depend on the other rows
    cache_ = std::make_shared<nn::KvCache>(1, size + most + width);
    Ids inputs = prompt, found;  // inputs: of the next forward; its first token is `start`
    int64_t start = 0;
    for (;;) {
      const bool is_prompt = start == 0;
      const Batch batch = batch_of(inputs, start, /*one_by_one=*/!is_prompt);
      const at::Tensor logits = rows_of(engine_.executor().logits(batch.to(engine_.device())));
      ++counts_.forwards;
      // the main head's choice after the last token, and after each draft that it has chosen itself
      const Ids drafts(is_prompt ? inputs.end() : inputs.begin() + 1, inputs.end());
      for (int64_t row = 0;; ++row) {
        found.push_back(choice(logits[row]));
        if (end_ids_.contains(found.back()) || std::ssize(found) == most) return found;
        if (row == std::ssize(drafts) || drafts[static_cast<size_t>(row)] != found.back()) break;
        ++counts_.accepted[static_cast<size_t>(row)];
      }
      // the heads see the tokens that stay; after them comes found.back()
      const int64_t checked = size + std::ssize(found) - 1;
      inputs.resize(static_cast<size_t>(checked - start));
      const at::Tensor guesses = rows_of(heads_.draft(batch_of(inputs, start, false).to(engine_.device())));
      inputs = {found.back()};
      for (int64_t head = 0; head < width; ++head) inputs.push_back(choice(guesses[head]));
      for (int64_t& number : counts_.drafted) ++number;
      start = checked;
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  /// (rows, vocab), fp32 in host memory.
  static at::Tensor rows_of(const at::Tensor& logits) {
    return logits.squeeze(0).to(at::kFloat).to(at::kCPU);
  }
  int32_t choice(const at::Tensor& logits) { return next_token(logits, {}, {}, random_); }

  /// `one_by_one`: each token is a span of its own, so that attention computes it exactly as it does
  /// when tokens are generated one by one, and the head returns logits of each. Otherwise of the
  /// last token only.
  Batch batch_of(const Ids& ids, int64_t start, bool one_by_one) {
    const std::vector<int64_t> tokens(ids.begin(), ids.end());
    const auto count = std::ssize(tokens);
    std::vector<int64_t> positions, wanted;
    std::vector<nn::CachedSpan> spans;
    for (int64_t i = 0; i < count; ++i) {
      positions.push_back(start + i);
      if (!one_by_one) continue;
      wanted.push_back(i);
      spans.push_back({.slot = 0, .start = start + i, .first = i, .count = 1});
    }
    if (!one_by_one) {
      wanted.push_back(count - 1);
      spans.push_back({.slot = 0, .start = start, .first = 0, .count = count});
    }
    cache_->begin(std::move(spans));
    Batch batch;
    batch.tokens = at::tensor(tokens).unsqueeze(0);
    batch.positions = at::tensor(positions).unsqueeze(0);
    batch.num_positions = cache_->capacity();
    batch.logits_of = at::tensor(wanted);
    batch.kv_cache = cache_;
    return batch;
  }

  Engine& engine_;
  FutureHeads& heads_;
  std::set<int32_t> end_ids_;
  std::shared_ptr<nn::KvCache> cache_;
  Counts counts_;
  at::Generator random_ = at::detail::createCPUGenerator(0);  // a greedy choice draws nothing
};

FutureHeads& heads_of(Engine& engine) {
  FutureHeads* found = nullptr;
  engine.part().visit_modules([&](const std::string&, nn::Module& module) {
    if (auto* heads = dynamic_cast<FutureHeads*>(&module)) found = heads;
  });
  TITAN_CHECK(found && found->count() > 0, config,
              "maintainers/speculate drafts with the future heads of maintainers/multi_token, and ",
              "this model has none; use titan generate, or train with model.future_heads >= 1");
  TITAN_CHECK(found->count() < ops::FewRowsScope::kMost, config, "maintainers/speculate checks at most ",
              ops::FewRowsScope::kMost, " tokens at once, and model.future_heads is ", found->count());
  return *found;
}

std::vector<Ids> prompts_of(const SpeculateOptions& options, const Engine& engine) {
  TITAN_CHECK(engine.tokenizer(), config,
              "maintainers/speculate needs a tokenizer: set --model.hf_assets_path to its folder");
  std::vector<std::string> texts = options.prompt;
  if (!options.prompts.empty()) {
    const std::string text = read_text(options.prompts);
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      if (end > begin) texts.push_back(text.substr(begin, end - begin));
    }
  }
  TITAN_CHECK(!texts.empty(), config, "maintainers/speculate needs --prompt TEXT or --prompts FILE");
  std::vector<Ids> prompts;
  for (const std::string& text : texts) {
    Ids& ids = prompts.emplace_back();
    if (const auto bos = engine.tokenizer()->special_tokens().bos) ids.push_back(*bos);
    engine.tokenizer()->encode(text, ids);
    TITAN_CHECK(std::ssize(ids) + options.max_new_tokens <= engine.context(), config, "a prompt of ",
                ids.size(), " tokens and --max-new-tokens ", options.max_new_tokens,
                " are more than the model's context of ", engine.context());
  }
  return prompts;
}

Value listed(const std::vector<int64_t>& numbers) {
  return Value::List(numbers.begin(), numbers.end());
}

std::string text_of(const Ids& ids, const Tokenizer& tokenizer, const std::set<int32_t>& end_ids) {
  TextStream stream(tokenizer, {});
  for (const int32_t id : ids)
    if (!end_ids.contains(id)) stream.add(id);
  stream.finish();
  return stream.text();
}

/// Throws an internal Error if a text differs from that of titan's own greedy decoding. Returns the
/// seconds of the latter.
double compare(Engine& engine, const std::vector<Ids>& prompts, const std::vector<Ids>& found,
               const GenerationOptions& how) {
  double seconds = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const double begin = monotonic_seconds();
    const Generated plain = engine.generator().generate({prompts[i]}, how).at(0);
    seconds += monotonic_seconds() - begin;
    TITAN_CHECK(plain.ids == found[i] && plain.text == text_of(found[i], *engine.tokenizer(), how.end_ids),
                internal, "prompt ", i, ": drafting gave other tokens than greedy decoding");
  }
  return seconds;
}

}  // namespace

int Speculate::run() {
  TITAN_CHECK(!options_.checkpoint.empty(), config,
              "maintainers/speculate needs --checkpoint FOLDER; see: titan maintainers/speculate --help");
  const auto model = context_.engines->open({"titan maintainers/speculate", context_.words, options_},
                                            options_.checkpoint, /*is_chat=*/false);
  Engine& engine = model->engine();
  const std::vector<Ids> prompts = prompts_of(options_, engine);
  model->with_ranks([&] {
    const at::NoGradGuard no_grad;
    TITAN_CHECK(engine.mesh().grid().world_size() == 1, config,
                "maintainers/speculate runs on one rank, got ", engine.mesh().grid().world_size());
    FutureHeads& heads = heads_of(engine);
    GenerationOptions plain;
    plain.max_new_tokens = options_.max_new_tokens;
    if (!options_.ignore_eos) plain.end_ids = engine.end_ids();
    Drafter drafter(engine, heads, plain.end_ids);
    double seconds = 0, plain_seconds = 0;
    int64_t tokens = 0;
    std::vector<Ids> found;
    for (int64_t repeat = 0; repeat < options_.repeats; ++repeat) {
      found.clear();
      heads.keep_inputs(true);
      const double begin = monotonic_seconds();
      for (const Ids& prompt : prompts) tokens += std::ssize(found.emplace_back(drafter.generate(prompt, plain.max_new_tokens)));
      seconds += monotonic_seconds() - begin;
      heads.keep_inputs(false);
      if (options_.compare) plain_seconds += compare(engine, prompts, found, plain);
    }
    for (size_t i = 0; i < prompts.size(); ++i)
      print_json(to_json(Value::map({{"ids", listed({found[i].begin(), found[i].end()})},
                                     {"text", text_of(found[i], *engine.tokenizer(), plain.end_ids)}})) + "\n");
    const Counts& counts = drafter.counts();
    Value summary = Value::map({{"tokens", tokens},
                                {"forwards", counts.forwards},
                                {"drafted", listed(counts.drafted)},
                                {"accepted", listed(counts.accepted)},
                                {"tokens_per_second", static_cast<double>(tokens) / seconds}});
    if (options_.compare) {
      summary["plain_tokens_per_second"] = static_cast<double>(tokens) / plain_seconds;
      summary["equals_greedy"] = true;
    }
    print_json(to_json(summary) + "\n");
  });
  return kExitDone;
}

}  // namespace multi_token
