// Plugins that the core chooses without being told their names: data, the only place for them
// beside the defaults of sections and the table of legacy names (tests/tools/plugin_names_test.py
// holds it).
#pragma once

namespace titan::core::default_plugins {

// [parallelism] data_parallel = "auto"
inline constexpr const char* kSharding = "fsdp";  ///< shards, casts, offloads
inline constexpr const char* kReplicas = "ddp";   ///< replicas alone

// [device] name = "auto", and what commands compute on that need no other
inline constexpr const char* kHost = "cpu";
inline constexpr const char* kGpu = "cuda";

// [tokenizer] name = "auto", by what the folder of assets holds
inline constexpr const char* kJsonTokenizer = "huggingface";     ///< tokenizer.json and its kin
inline constexpr const char* kRankedTokenizer = "tiktoken";      ///< lines of base64 and a rank
inline constexpr const char* kPieceTokenizer = "sentencepiece";  ///< a protobuf

inline constexpr const char* kChatTemplate = "jinja";  ///< of commands that render conversations

// [compile] backend = "inductor", the compiler of PyTorch: what passes for it here
inline constexpr const char* kCompileBackend = "fused";

inline constexpr const char* kTensorBoard = "tensorboard";  ///< metrics.enable_tensorboard
inline constexpr const char* kWandb = "wandb";              ///< metrics.enable_wandb
/// Watchers, in the order in which they act, and the key that asks for each: by another value than
/// its default.
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
    {"debug.trace_tensors_until", "debugging"},  // it refuses a last step before the first
    {"debug.find_nan", "debugging"},
    {"debug.detect_anomaly", "debugging"},
    {"validation.tasks", "task_scores"},
};

inline constexpr const char* kScheduleFile = "csv";  ///< parallelism.pipeline_parallel_schedule_csv
inline constexpr const char* kMetricsFile = "jsonl";  ///< what `titan bench` reads of a run

}  // namespace titan::core::default_plugins
