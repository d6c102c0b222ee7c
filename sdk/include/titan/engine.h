// Opens models for command plugins: for inference, as `titan generate` does, or for training with a
// custom loop. A command gets the EngineHost from its context (titan/command.h). It runs in
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

/// Rendezvous settings of a command's ranks, for use without a launcher. The command's options
/// struct derives from it; declare_rank_flags declares the flags.
struct RankFlags {
  std::optional<int64_t> rank, world_size, local_rank;
  std::optional<std::string> master;
};

/// Declares --rank, --world-size, --local-rank and --master, as in `titan train`.
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

/// The job that a command opens.
struct EngineRequest {
  std::string command;           ///< "titan generate"; error reports refer to its --help
  std::vector<std::string> job;  ///< --job.config_file FILE, --section.key VALUE
  RankFlags ranks;
};

/// A model on the ranks of a layout. Thread: main thread. Every rank makes the same calls; calls
/// that communicate come in the same order on all ranks.
class TITAN_API Engine {
 public:
  virtual ~Engine();

  virtual const Value& config() const = 0;  ///< the job, every option with its value
  virtual const Model& model() const = 0;   ///< the whole model: sizes, names, weight exchange
  /// Null if the job has none.
  virtual const Tokenizer* tokenizer() const = 0;
  /// Null if no chat template was opened.
  virtual const ChatText* chat() const = 0;
  /// Context length in tokens: max_position_embeddings of config.json, else training.seq_len.
  virtual int64_t context() const = 0;
  /// Tokens that end a text.
  virtual std::set<int32_t> end_ids() const = 0;

  // once the ranks are connected
  virtual const dist::Mesh& mesh() const = 0;
  virtual c10::Device device() const = 0;
  virtual ModelPart& part() = 0;         ///< the layers and parameters of this rank
  virtual StepExecutor& executor() = 0;  ///< runs the layers: logits, and a loss without gradients
  /// Returns rank 0's `value` on every rank. Each `name` is used once.
  virtual std::string from_rank_zero(const std::string& name, const std::string& value) = 0;

  /// Generates text with the model's current weights. The engine outlives the generator.
  Generator generator();
  /// log softmax(logits)[label] of each token of `batch`, in host memory: (rows, seq_len), nats,
  /// fp32, 0 for tokens without a label. No gradients. Training computes the same bits if the batch
  /// is one chunk of the head's loss (ops::chunk_rows).
  at::Tensor log_likelihoods(const Batch& batch);
};

/// A model with loaded weights, without an optimizer or data.
class TITAN_API OpenedModel {
 public:
  virtual ~OpenedModel();
  /// Before with_ranks only config, model, tokenizer, chat, context and end_ids may be called.
  virtual Engine& engine() = 0;
  /// [once, on every rank] Connects the ranks, loads the weights and runs `work`. An error also
  /// reports what the other ranks were doing.
  virtual void with_ranks(const std::function<void()>& work) = 0;
};

/// One step of a custom loop.
struct LoopStep {
  /// This rank's microbatches, in host memory; all ranks have the same number of rows. The job's
  /// loss is used. If that loss needs no reference model, the loop may set Batch::reference to
  /// per-token inputs of the loss: (rows, seq_len) or (rows, seq_len, n), fp32.
  std::vector<Batch> microbatches;
  std::vector<Scalar> scalars;  ///< logged with the step; their tags outlive the run
};

/// Supplies the batches of a training run in place of the job's data. Everything else is as in
/// `titan train`: the job's layout, loss, optimizer, schedule, metrics, checkpoints and signals.
class TITAN_API TrainingLoop {
 public:
  virtual ~TrainingLoop();
  /// [once, weights are loaded] Steps up to `first_step` were done by earlier starts.
  virtual void begin(Engine& /*engine*/, int64_t /*first_step*/) {}
  /// [before each step] `number`: from 1.
  virtual LoopStep next(Engine& engine, int64_t number) = 0;
  /// [once] After the last step, not after an error.
  virtual void end(Engine& /*engine*/) {}
};

/// Opens models for commands. Reports errors of a job as `titan train` does.
class TITAN_API EngineHost {
 public:
  virtual ~EngineHost();
  /// `weights`: a complete Titan checkpoint, a folder of checkpoints, of which the newest complete
  /// one is used, or a Hugging Face folder. Of the job only the model and the layout are used.
  /// Without a configuration file the model follows from the checkpoint's manifest, or from
  /// config.json if an installed model supports it. Only converters that change exported weights
  /// (ExportTransform), such as adapters, are applied. `is_chat`: also open the job's chat
  /// template, or the default one.
  virtual std::unique_ptr<OpenedModel> open(const EngineRequest& request,
                                            const std::filesystem::path& weights, bool is_chat) = 0;
  /// Trains the job with the steps of `loop`. Returns the exit code of `titan train`.
  virtual int train(const EngineRequest& request, TrainingLoop& loop) = 0;
  /// Completes an interrupted conversion in `to`. Throws a config Error, and changes nothing, if
  /// `to` holds anything else.
  virtual ConversionResult convert(const ConversionRequest& request,
                                   const ReportConverted& report) = 0;
};

}  // namespace titan
