// titan maintainers/grpo: a model learns to add from rewards for its answers. GRPO: several answers
// to a prompt, each weighted by its advantage over the others (Shao et al., 2024).
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>
#include <titan/command.h>
#include <titan/engine.h>
#include <titan/generation/rows.h>
#include <titan/plugin.h>
#include <titan/sequence_loss.h>

namespace grpo {
namespace {

struct LossOptions {
  double clip = 0.2;
};

/// The clipped objective of PPO: -min(r A, clip(r) A), r = p(token) / p when it was sampled. For
/// each token Batch::reference holds (log-likelihood when it was sampled, A).
class GrpoLoss final : public titan::SequenceLoss {
 public:
  GrpoLoss(const LossOptions& options, titan::LossContext) : options_(options) {}
  std::vector<std::string> part_names() const override { return {"moved"}; }
  int64_t num_terms(const titan::Batch& batch) const override {
    return batch.labels.ne(titan::Batch::kIgnoredLabel).sum().item<int64_t>();
  }
  titan::RowsLoss of_sequences(const at::Tensor& found, const titan::Batch& batch) override {
    const at::Tensor mask = batch.labels.ne(titan::Batch::kIgnoredLabel);
    if (!batch.reference.defined())
      return {(found * mask).sum().to(at::kDouble) * 0, {mask.sum() * 0}};
    const at::Tensor sampled = batch.reference.select(-1, 0),
                     advantage = batch.reference.select(-1, 1);
    const at::Tensor ratio = (found - sampled).exp();
    const at::Tensor gain = at::minimum(
        ratio * advantage, ratio.clamp(1 - options_.clip, 1 + options_.clip) * advantage);
    // counts tokens whose log-likelihood is not bitwise the one when they were sampled
    return {-(gain * mask).sum(at::kDouble), {(found.ne(sampled) & mask).sum().to(at::kDouble)}};
  }

 private:
  LossOptions options_;
};

struct Options : titan::RankFlags {
  int64_t prompts = 64, samples = 16, rows = 64;
  double temperature = 1;
  int64_t seed = 0;
};

constexpr int64_t kAnswer = 3;  // digits

/// One in eleven sums is never trained on; these are for grading. Every pair of last digits is
/// trained on, because 11 and 10 share no factor.
bool is_held_out(int64_t a, int64_t b) {
  return (7 * a + 3 * b) % 11 == 0;
}

/// Whether each digit of an answer is right.
using Rewards = std::array<double, kAnswer>;

Rewards rewards_of(const std::string& answer, int64_t sum) {
  std::string right = std::to_string(sum);
  right.insert(0, kAnswer - right.size(), '0');
  Rewards rewards{};
  for (size_t i = 0; i < std::min(answer.size(), right.size()); ++i)
    rewards[i] = answer[i] == right[i] ? 1 : 0;
  return rewards;
}

/// Advantage of each digit over the other answers to the same prompt, in standard deviations.
std::vector<Rewards> advantages_of(std::vector<Rewards> rewards, size_t samples) {
  const auto count = static_cast<double>(samples);
  for (size_t first = 0; first < rewards.size(); first += samples)
    for (size_t digit = 0; digit < kAnswer; ++digit) {
      double mean = 0, square = 0;
      for (size_t i = 0; i < samples; ++i) mean += rewards[first + i][digit] / count;
      for (size_t i = 0; i < samples; ++i) square += std::pow(rewards[first + i][digit] - mean, 2);
      for (size_t i = 0; i < samples; ++i)
        rewards[first + i][digit] =
            (rewards[first + i][digit] - mean) / (std::sqrt(square / count) + 1e-4);
    }
  return rewards;
}

class Loop final : public titan::TrainingLoop {
 public:
  explicit Loop(const Options& options) : options_(options) {}

  titan::LoopStep next(titan::Engine& engine, int64_t number) override {
    std::mt19937_64 random(static_cast<uint64_t>(options_.seed * 1'000'003 + number));
    std::vector<std::vector<int32_t>> prompts;
    std::vector<int64_t> sums;
    while (sums.size() < static_cast<size_t>(options_.prompts)) {
      const auto a = static_cast<int64_t>(10 + random() % 90),
                 b = static_cast<int64_t>(10 + random() % 90);
      if (is_held_out(a, b)) continue;
      engine.tokenizer()->encode(std::to_string(a) + "+" + std::to_string(b) + "=",
                                 prompts.emplace_back());
      sums.push_back(a + b);
    }
    const int64_t seq_len = engine.config().at("training").at("seq_len").as_integer();
    titan::GenerationOptions how;
    how.max_new_tokens = kAnswer;
    how.num_samples = options_.samples;
    how.sampling.temperature = options_.temperature;
    how.seed = random() >> 1;
    how.gives_log_likelihoods = true;
    how.as_trained = {.rows = options_.rows, .seq_len = seq_len};
    const auto answers = engine.generator().generate(prompts, how);

    std::vector<Rewards> rewards;
    for (const titan::Generated& answer : answers)
      rewards.push_back(rewards_of(answer.text, sums[answer.prompt]));
    const auto advantages = advantages_of(rewards, static_cast<size_t>(options_.samples));
    std::vector<titan::SequenceRow> rows;
    for (size_t i = 0; i < answers.size(); ++i) {
      titan::SequenceRow& row = rows.emplace_back();
      row.ids = prompts[answers[i].prompt];
      row.prompt_size = row.ids.size();
      row.ids.insert(row.ids.end(), answers[i].ids.begin(), answers[i].ids.end());
      for (size_t digit = 0; digit < answers[i].log_likelihoods.size(); ++digit)
        row.given.push_back(
            {answers[i].log_likelihoods[digit], static_cast<float>(advantages[i][digit])});
    }
    titan::LoopStep step;  // ranks of data parallelism share the microbatches
    const auto at_once = static_cast<size_t>(options_.rows);
    const auto ranks = static_cast<size_t>(engine.mesh().grid().batch());
    for (size_t first = at_once * static_cast<size_t>(engine.mesh().batch_rank());
         first < rows.size(); first += at_once * ranks)
      step.microbatches.push_back(
          titan::batch_of_rows({rows.begin() + static_cast<std::ptrdiff_t>(first),
                                rows.begin() + static_cast<std::ptrdiff_t>(first + at_once)},
                               seq_len));
    const auto right = std::count_if(rewards.begin(), rewards.end(), [](const Rewards& digits) {
      return std::all_of(digits.begin(), digits.end(), [](double digit) { return digit == 1; });
    });
    step.scalars.push_back(
        {"grpo/right", static_cast<double>(right) / static_cast<double>(rewards.size())});
    return step;
  }

 private:
  Options options_;
};

class Grpo final : public titan::Command {
 public:
  static constexpr titan::CommandWords kWords{.most = SIZE_MAX, .takes_job = true};
  Grpo(const Options& options, const titan::CommandContext& context)
      : options_(options), context_(context) {}
  int run() override {
    Loop loop(options_);
    return context_.engines->train({"titan maintainers/grpo", context_.words, options_}, loop);
  }

 private:
  Options options_;
  titan::CommandContext context_;
};

}  // namespace
}  // namespace grpo

TITAN_PLUGIN(plugin) {
  using grpo::Options;
  auto& command =
      plugin
          .add<grpo::Grpo>("maintainers/grpo",
                           "teach a model sums of two-digit numbers by rewards for its own answers")
          .option("prompts", &Options::prompts, "sums to solve in each step")
          .at_least(1)
          .option("samples", &Options::samples, "answers to each sum")
          .at_least(2)
          .option("rows", &Options::rows, "rows of a microbatch")
          .at_least(1)
          .option("temperature", &Options::temperature, "sampling temperature of the answers")
          .greater_than(0)
          .option("seed", &Options::seed, "seed of the sums and the answers");
  titan::declare_rank_flags<Options>(command);
  plugin
      .add<grpo::GrpoLoss>("maintainers/grpo",
                           "the clipped objective of PPO over sampled answers")
      .option("clip", &grpo::LossOptions::clip, "largest relative change of a token's probability")
      .greater_than(0);
}
