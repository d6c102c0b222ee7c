// Names of plugins that the core chooses by itself. Apart from the defaults of sections and the
// table of legacy names, this is the only place for plugin names in the core
// (tests/tools/plugin_names_test.py checks that).
#pragma once

namespace titan::core::default_plugins {

// [parallelism] data_parallel = "auto"
inline constexpr const char* kSharding = "fsdp";  ///< shards, casts, offloads
inline constexpr const char* kReplicas = "ddp";   ///< replicas alone

inline constexpr const char* kReplicaGroups = "replicas";  ///< fault_tolerance.enable
inline constexpr const char* kSemiSync = "semi_sync";      ///< fault_tolerance.semi_sync_method

// [device] name = "auto", and the device of commands that need no other
inline constexpr const char* kHost = "cpu";
inline constexpr const char* kGpu = "cuda";

// [tokenizer] name = "auto", by the files in the folder of assets
inline constexpr const char* kJsonTokenizer = "huggingface";     ///< tokenizer.json and similar
inline constexpr const char* kRankedTokenizer = "tiktoken";      ///< lines of base64 and a rank
inline constexpr const char* kPieceTokenizer = "sentencepiece";  ///< a protobuf

inline constexpr const char* kChatTemplate = "jinja";  ///< for commands that render conversations

// the backend for [compile] backend = "inductor", PyTorch's compiler
inline constexpr const char* kCompileBackend = "fused";

inline constexpr const char* kTensorBoard = "tensorboard";  ///< metrics.enable_tensorboard
inline constexpr const char* kWandb = "wandb";              ///< metrics.enable_wandb
/// Watchers, in the order in which they act. A key that differs from its default selects its
/// watcher.
struct WatcherOfKey {
  const char* key;
  const char* watcher;
};
inline constexpr WatcherOfKey kWatchers[] = {
    {"metrics.norms", "parameter_statistics"},
    {"metrics.histograms", "parameter_statistics"},
    {"debug.fingerprints", "fingerprints"},
    {"profiling.enable_profiling", "profiling"},
    {"profiling.enable_memory_snapshot", "profiling"},
    {"debug.trace_tensors", "debugging"},
    {"debug.trace_tensors_until", "debugging"},  // the watcher checks it against trace_tensors_from
    {"debug.find_nan", "debugging"},
    {"debug.detect_anomaly", "debugging"},
    {"validation.tasks", "task_scores"},
};

inline constexpr const char* kScheduleFile = "csv";  ///< parallelism.pipeline_parallel_schedule_csv
inline constexpr const char* kMetricsFile = "jsonl";  ///< the logger whose file `titan bench` reads

}  // namespace titan::core::default_plugins
