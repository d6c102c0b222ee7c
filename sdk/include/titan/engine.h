// A model that a command opens: to ask it, or to train it by a custom loop. `titan generate`
// is made of the first. A command gets the EngineHost by its context (titan/command.h) and runs in
// titan-train, so it is not TORCH_FREE.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <titan/batch.h>
#include <titan/chat_text.h>
#include <titan/conversion.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/generation/generator.h>
#include <titan/logger.h>
#include <titan/model.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(engine);

namespace titan {

/// How the ranks of a command find each other, where no launcher says it. An options struct derives
/// from it, and declare_rank_flags declares the flags.
struct RankFlags {
  std::optional<int64_t> rank, world_size, local_rank;
  std::optional<std::string> master;
};

/// --rank, --world-size, --local-rank and --master, as `titan train` has them.
template <class Options, class Builder>
Builder& declare_rank_flags(Builder& builder) {
  using Number = std::optional<int64_t> Options::*;
  using Text = std::optional<std::string> Options::*;
  constexpr int64_t kMost = INT32_MAX;
  builder
      .option(
          "rank", Number(&Options::rank),
          "rank of this process, if no launcher sets it (titan launch, torchrun, srun, mpirun do)")
      .between(0, kMost)
      .option("world_size", Number(&Options::world_size), "all ranks")
      .between(1, kMost)
      .option("local_rank", Number(&Options::local_rank), "number of this process on its node")
      .between(0, kMost)
      .option("master", Text(&Options::master), "rendezvous address, HOST:PORT of rank 0");
  return builder;
}

/// A job of a command.
struct EngineRequest {
  std::string command;           ///< "titan generate": whose --help a report refers to
  std::vector<std::string> job;  ///< --job.config_file FILE, --section.key VALUE
  RankFlags ranks;
};

/// A model on the ranks of a layout. All of it may be called on every rank only, by the main
/// thread; what communicates is called by every rank in the same order.
class TITAN_API Engine {
 public:
  virtual ~Engine();

  virtual const Value& config() const = 0;  ///< the job, every option with its value
  virtual const Model& model() const = 0;   ///< the whole model: sizes, names, exchange
  /// Null when there is none.
  virtual const Tokenizer* tokenizer() const = 0;
  /// Null unless a chat template was asked for.
  virtual const ChatText* chat() const = 0;
  /// Tokens of a sequence that the model is meant for.
  virtual int64_t context() const = 0;
  /// After one of these tokens a text ends.
  virtual std::set<int32_t> end_ids() const = 0;

  // once the ranks have met
  virtual const dist::Mesh& mesh() const = 0;
  virtual c10::Device device() const = 0;
  virtual ModelPart& part() = 0;         ///< the layers and parameters of this rank
  virtual StepExecutor& executor() = 0;  ///< runs them: logits, and a loss without gradients
  /// Rank 0's `value` of `name` on every rank. A name is used once.
  virtual std::string from_rank_zero(const std::string& name, const std::string& value) = 0;

  /// Makes text of the model as it is now. Outlived by the engine.
  Generator generator();
  /// log softmax(logits)[label] of each token of `batch`, in host memory: (rows, seq_len), nats,
  /// fp32, 0 where a token has no label. No gradients; a head with a loss finds the same bits in
  /// training where the batch is one chunk of it (ops::chunk_rows).
  at::Tensor log_likelihoods(const Batch& batch);
};

/// A model with weights, without anything that trains it.
class TITAN_API OpenedModel {
 public:
  virtual ~OpenedModel();
  /// Before with_ranks it has config, model, tokenizer, chat, context and end_ids alone.
  virtual Engine& engine() = 0;
  /// [once, on every rank] Brings the ranks together, loads the weights and runs `work`; an error
  /// also says what the other ranks were doing.
  virtual void with_ranks(const std::function<void()>& work) = 0;
};

/// One step of a custom loop.
struct LoopStep {
  /// Of this rank, in host memory, one row count for all ranks. The loss is that of the job;
  /// Batch::reference is the loop's where the loss asks for no reference model: whatever the loss
  /// is to know of each token, (rows, seq_len) or (rows, seq_len, n) in fp32.
  std::vector<Batch> microbatches;
  std::vector<Scalar> scalars;  ///< logged with the step, under tags that outlive the run
};

/// Gives a training run its steps, in place of the job's data. Everything else is as in `titan
/// train`: the job's layout, loss, optimizer, schedule, metrics, checkpoints and signals.
class TITAN_API TrainingLoop {
 public:
  virtual ~TrainingLoop();
  /// [once] The weights are there; steps up to `first_step` were made by earlier starts.
  virtual void begin(Engine& /*engine*/, int64_t /*first_step*/) {}
  /// [before each step] `number`: from 1.
  virtual LoopStep next(Engine& engine, int64_t number) = 0;
  /// [once] After the last step, not after an error.
  virtual void end(Engine& /*engine*/) {}
};

/// Opens what a command asks for. Errors of a job are found as `titan train` finds them.
class TITAN_API EngineHost {
 public:
  virtual ~EngineHost();
  /// `weights`: a complete step of ours, a folder of steps, whose newest complete one is taken, or
  /// a Hugging Face folder. Of the job only the model and the layout count; without a configuration
  /// file the model is what the checkpoint's manifest says, or what an installed model makes of
  /// config.json. Converters that change what weights are for others, such as adapters, count;
  /// others do not. `is_chat`: by the job's chat template, or that of most models.
  virtual std::unique_ptr<OpenedModel> open(const EngineRequest& request,
                                            const std::filesystem::path& weights, bool is_chat) = 0;
  /// Trains the job with the steps of `loop`. Returns the exit code of `titan train`.
  virtual int train(const EngineRequest& request, TrainingLoop& loop) = 0;
  /// Throws a config Error, and changes nothing, when `to` holds anything but an earlier part of
  /// the same conversion, which is finished then.
  virtual ConversionResult convert(const ConversionRequest& request,
                                   const ReportConverted& report) = 0;
};

}  // namespace titan
