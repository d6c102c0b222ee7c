// The core's sections of the configuration, one struct each, with the key names and defaults of
// torchtitan v0.2.2 and Titan's additions, marked (Titan). Options of components (lr, model
// dimensions, ...) come from the components' own schemas. Ranges and help texts are in
// job_schema*.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/options.h>

#include "core/base/dtype.h"
#include "core/config/schema/packing.h"

namespace titan::core {

/// [plugins] (Titan)
struct PluginsSection {
  std::vector<std::string> paths;   ///< folders searched first
  std::optional<std::string> lock;  ///< unset: none is next to the configuration
  bool allow_unsigned = false;
};

/// [job]
struct JobSection {
  std::optional<std::string> config_file;
  std::string dump_folder = "./outputs";  ///< root of every output path
  std::string description = "default job";
  bool print_config = false;
  std::optional<std::string> save_config_file;
  std::vector<std::string> watchers;  ///< (Titan) as written; see JobConfig::watchers
  std::string custom_config_module;   ///< no effect
};

/// [profiling]
struct ProfilingSection {
  bool enable_profiling = false;
  std::string save_traces_folder = "profile_traces";
  int64_t profile_freq = 10;
  int64_t profiler_active = 1;
  int64_t profiler_warmup = 3;
  bool compress_traces = true;
  bool enable_memory_snapshot = false;
  std::string save_memory_snapshot_folder = "memory_snapshot";
};

enum class NormsOf { none, layers, parameters };

/// [metrics]
struct MetricsSection {
  int64_t log_freq = 10;
  bool enable_tensorboard = false;
  bool disable_color_printing = false;
  std::string save_tb_folder = "tb";
  bool save_for_all_ranks = false;
  bool enable_wandb = false;
  std::vector<std::string> loggers = {"console",
                                      "jsonl"};  ///< (Titan) as written; see JobConfig::loggers
  NormsOf norms = NormsOf::none;        ///< (Titan) of weights and gradients, at logged steps
  std::vector<std::string> histograms;  ///< (Titan) of the parameters that these patterns match
  int64_t histogram_freq = 100;         ///< (Titan) steps
  std::optional<double> peak_flops;     ///< (Titan) FLOP/s per device, for MFU
};

/// Whether numbers of `step` are logged.
inline bool is_logged(const MetricsSection& metrics, int64_t step) {
  return step == 1 || step % metrics.log_freq == 0;
}

/// [model], without the model's own dimensions
struct ModelSection {
  std::string name = "llama3";
  std::string flavor = "debugmodel";
  std::string hf_assets_path = "./tests/assets/tokenizer";
  std::vector<std::string> converters;
  bool print_after_conversion = false;
};

/// [optimizer], without the optimizer's own options
struct OptimizerSection {
  std::string name = "AdamW";
  bool early_step_in_backward = false;
};

/// [optimizer.groups.<name>] (Titan), without the optimizer's own options
struct OptimizerGroupSection {
  std::vector<std::string> patterns;
};

/// [lr_scheduler], without the schedule's own options
struct LrSchedulerSection {
  std::string name = "warmup_stable_decay";
};

/// [loss] (Titan), without the loss's own options
struct LossSection {
  std::optional<std::string> name;  ///< unset: the model's own cross entropy
};

/// [reference] (Titan): the frozen reference model of a loss
struct ReferenceSection {
  std::optional<std::string> checkpoint;  ///< unset: the weights that the run starts from
};

/// [tokenizer] (Titan)
struct TokenizerSection {
  std::string name = "auto";  ///< as written; see JobConfig::tokenizer
};

/// [chat_template] (Titan), without the template's own options
struct ChatTemplateSection {
  std::optional<std::string> name;  ///< unset: conversations are not rendered
};

/// [device] (Titan)
struct DeviceSection {
  std::string name = "auto";  ///< as written; see JobConfig::device
};

/// [training.dataloader] and [validation.dataloader]
struct DataloaderSection {
  int64_t num_workers = 0;
  bool persistent_workers = false;
  bool pin_memory = false;
  std::optional<int64_t> prefetch_factor;
};

/// [training.loss_scaling] (Titan): for computation in float16
struct LossScalingSection {
  double initial = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  ///< steps
  double minimum = 1;
};

/// [training]
struct TrainingSection {
  std::string dataset = "c4_test";
  std::optional<std::string> dataset_path;
  int64_t local_batch_size = 8;    ///< sequences per data-parallel rank and accumulation round
  int64_t global_batch_size = -1;  ///< as written; see Layout::global_batch_size
  int64_t seq_len = 2048;
  double max_norm = 1.0;
  int64_t steps = 10000;
  bool enable_cpu_offload = false;
  Dtype dtype = Dtype::float32;                   ///< of parameters, gradients, states
  Dtype mixed_precision_param = Dtype::bfloat16;  ///< of the computation
  Dtype mixed_precision_reduce = Dtype::float32;
  int64_t gc_freq = 50;   ///< no effect
  bool gc_debug = false;  ///< no effect
  LossScalingSection loss_scaling;
  DataloaderSection dataloader;
};

/// [data.sources.<name>] (Titan): one source of a blend. The options of its data set are in the
/// same section.
struct SourceSection {
  std::string dataset;
  std::optional<std::string> dataset_path;
  double weight = 1;
};

/// [data] (Titan): how documents become the sequences of a batch
struct DataSection {
  Packing packing = Packing::concatenate;
  bool isolate_documents = false;
  bool labels_cross_documents = true;
  TooLong too_long = TooLong::error;
  bool shuffle = false;
  int64_t shuffle_buffer = 1000;
  Duration timeout{60};
};

enum class ReshardAfterForward { standard, always, never };
enum class RotateMethod { allgather, alltoall };
enum class ExpertBackend { standard, deepep };

/// [parallelism]. Degrees as written; in Layout -1 is replaced.
struct ParallelismSection {
  int64_t data_parallel_replicate_degree = 1;
  int64_t data_parallel_shard_degree = -1;
  ReshardAfterForward fsdp_reshard_after_forward = ReshardAfterForward::standard;
  int64_t tensor_parallel_degree = 1;
  bool disable_loss_parallel = false;
  bool enable_async_tensor_parallel = false;
  int64_t pipeline_parallel_degree = 1;
  std::optional<std::vector<std::vector<std::string>>> module_fqns_per_model_part;
  int64_t pipeline_parallel_first_stage_less_layers = 1;
  int64_t pipeline_parallel_last_stage_less_layers = 1;
  std::optional<int64_t> pipeline_parallel_layers_per_stage;
  std::string pipeline_parallel_schedule = "1F1B";
  std::optional<std::string> pipeline_parallel_schedule_csv = "";
  int64_t pipeline_parallel_microbatch_size = 1;
  bool pipeline_parallel_expert_parallel_overlap = true;
  int64_t context_parallel_degree = 1;
  std::optional<std::string> context_parallel_load_balancer = "headtail";
  RotateMethod context_parallel_rotate_method = RotateMethod::allgather;
  int64_t expert_parallel_degree = 1;
  int64_t expert_tensor_parallel_degree = 1;
  ExpertBackend expert_parallel_comm_backend = ExpertBackend::standard;
  std::string data_parallel = "auto";          ///< (Titan) plugin of the data-parallel axes
  std::string tensor_parallel = "tensor";      ///< (Titan) plugin of the tensor axis
  std::string pipeline_parallel = "pipeline";  ///< (Titan) plugin of the pipeline axis
  std::string context_parallel = "context";    ///< (Titan) plugin of the context axis
  std::string expert_parallel = "expert";      ///< (Titan) plugin of expert parallelism
  std::vector<std::string> further;            ///< (Titan) further parallelism plugins
};

enum class AsyncMode { disabled, async, async_with_pinned_mem };

/// [checkpoint]
struct CheckpointSection {
  bool enable = false;
  bool enable_ft_dataloader_checkpoints = true;  ///< no effect
  std::string folder = "checkpoint";
  int64_t interval = 500;
  std::optional<std::string> initial_load_path;
  bool initial_load_model_only = true;
  bool initial_load_in_hf = false;
  bool initial_load_in_hf_quantized = false;
  bool last_save_model_only = true;
  bool last_save_in_hf = false;
  Dtype export_dtype = Dtype::float32;
  AsyncMode async_mode = AsyncMode::disabled;
  int64_t keep_latest_k = 10;
  int64_t load_step = -1;
  std::vector<std::string> exclude_from_loading;
  std::vector<std::string> take_on_trust;  ///< (Titan)
  bool enable_first_step_checkpoint = false;
  bool create_seed_checkpoint = false;
  bool load_only = false;
  std::optional<std::string> local_folder;  ///< (Titan)
  int64_t local_interval = 10;              ///< (Titan)
  int64_t local_copies = 1;                 ///< (Titan)
};

/// [activation_checkpoint]; further keys of the section are the plugin's
struct ActivationCheckpointSection {
  std::string mode = "selective";     ///< a plugin of kind activation_checkpoint, or "none"
  std::optional<Bytes> memory_limit;  ///< (Titan)
};

/// [compile]
struct CompileSection {
  bool enable = false;
  std::vector<std::string> components = {"model", "loss"};
  std::string backend = "inductor";
  bool graphs = true;  ///< (Titan)
};

enum class CommMode { standard, fake_backend, local_tensor };

/// [comm]
struct CommSection {
  int64_t init_timeout_seconds = 300;
  int64_t train_timeout_seconds = 100;
  int64_t trace_buf_size = 20000;
  std::string save_traces_folder = "comm_traces";
  std::string save_traces_file_prefix = "rank_";
  CommMode mode = CommMode::standard;
};

/// [memory_estimation]
struct MemoryEstimationSection {
  bool enable = false;
  bool disable_fake_mode = false;
};

/// [fault_tolerance]
struct FaultToleranceSection {
  bool enable = false;
  std::string process_group = "gloo";
  int64_t process_group_timeout_ms = 10000;
  int64_t replica_id = 0;
  int64_t group_size = 0;
  int64_t min_replica_size = 1;
  std::optional<std::string> semi_sync_method;
  int64_t sync_steps = 5;
  bool should_quantize = false;
  int64_t fragment_sync_delay = 0;
  double fragment_update_alpha = 0;
  int64_t num_fragments = 1;
  std::vector<std::vector<std::string>> module_fqns_per_model_fragment;

  /// Whether all groups write to one folder of checkpoints: their states are equal after each step.
  bool shares_checkpoints() const { return !semi_sync_method; }
};

/// [experimental]; neither has an effect
struct ExperimentalSection {
  std::string custom_import;
  std::string custom_args_module;
};

/// [validation]
struct ValidationSection {
  bool enable = false;
  std::string dataset = "c4_validation";
  std::optional<std::string> dataset_path;
  int64_t local_batch_size = 8;
  int64_t seq_len = 2048;
  int64_t freq = 10;
  int64_t steps = -1;
  DataloaderSection dataloader;
  std::vector<std::string> tasks;     ///< (Titan) files and folders as for titan evaluate
  std::optional<int64_t> tasks_freq;  ///< (Titan) steps between these scores; unset: `freq`
};

/// [debug]
struct DebugSection {
  std::optional<int64_t> seed;
  bool deterministic = false;
  bool deterministic_warn_only = false;
  bool moe_force_load_balance = false;
  bool fingerprints = false;                   ///< (Titan)
  bool find_nan = false;                       ///< (Titan)
  bool detect_anomaly = false;                 ///< (Titan)
  std::vector<std::string> trace_tensors;      ///< (Titan)
  int64_t trace_tensors_from = 1;              ///< (Titan)
  std::optional<int64_t> trace_tensors_until;  ///< (Titan)
  int64_t trace_tensors_every = 1;             ///< (Titan)
};

}  // namespace titan::core
