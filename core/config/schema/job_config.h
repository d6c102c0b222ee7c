// The checked and resolved job, which resolve() (resolve.h) makes and the trainer, the commands and
// the loggers read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/axes.h>
#include <titan/options.h>
#include <titan/pipeline_schedule.h>
#include <titan/settings/settings.h>
#include <titan/settings/source_range.h>
#include <titan/value.h>

#include "core/config/schema/job_sections.h"

namespace titan::core {

/// One component that the configuration chose, ready for Registry::create(kind, name, options,
/// context).
struct Selection {
  std::string kind;          ///< "optimizer"
  std::string name;          ///< "AdamW", as the component spells it
  Value options;             ///< a map of every option of its schema, in canonical form
  SourceRange where;         ///< the value that chose it; without a source when it is the default
  std::string section = {};  ///< the section of its options: "optimizer", "dataset.jsonl"
};

/// Parameters with their own optimizer: [optimizer.groups.<name>].
struct OptimizerGroup {
  std::string name;
  std::vector<std::string> patterns;  ///< of parameters' names; * matches any text
  Selection optimizer;                ///< the run's optimizer with the group's options
};

/// One data set of a blend; a run without [data.sources] has one.
struct DataSource {
  std::string name;  ///< of its section, or of the data set
  std::string path;  ///< empty: the data set's own default
  double weight = 1;
  Selection dataset;
  std::string path_key = {};  ///< "training.dataset_path"
};

/// The axes and groups of ranks that a chosen parallelism declares.
struct AxisRequest {
  Selection by;
  AxisPlan plan;
};

/// The degrees with -1 replaced by its value, and the batch sizes that follow from them.
struct Layout {
  int64_t replicate = 1, shard = 1, context = 1, tensor = 1, pipeline = 1;
  int64_t data_parallel = 1;        ///< replicate x shard
  int64_t global_batch_size = 0;    ///< sequences per step over all ranks
  int64_t accumulation_rounds = 1;  ///< global_batch_size / (local_batch_size x data_parallel)
  int64_t added = 1;                ///< factor of the number of ranks from the axes of plugins

  /// The degrees of the core's own axes.
  dist::MeshShape core_axes() const {
    return {
        .pp = pipeline, .dp_replicate = replicate, .dp_shard = shard, .cp = context, .tp = tensor};
  }
  dist::Grid grid;  ///< with the axes of plugins; one rank if degrees are wrong
};

class KeyPlaces;

/// A whole job. Sections hold the values as configured (command line > file > flavor preset >
/// default), except that a default that is not supported yet is replaced by the value in use
/// (resolve() adds a note).
struct JobConfig {
  PluginsSection plugins;
  JobSection job;
  ProfilingSection profiling;
  MetricsSection metrics;
  ModelSection model;
  TokenizerSection tokenizer_section;
  OptimizerSection optimizer_section;
  LrSchedulerSection lr_scheduler_section;
  LossSection loss_section;
  ReferenceSection reference;
  ChatTemplateSection chat_template_section;
  TrainingSection training;
  DataSection data;
  DeviceSection device_section;
  ParallelismSection parallelism;
  CheckpointSection checkpoint;
  ActivationCheckpointSection activation_checkpoint;
  CompileSection compile;
  CommSection comm;
  MemoryEstimationSection memory_estimation;
  FaultToleranceSection fault_tolerance;
  ExperimentalSection experimental;
  ValidationSection validation;
  DebugSection debug;

  Selection model_plugin, optimizer, lr_scheduler, tokenizer, device;
  Selection loss;                                ///< without a name: the model's own cross entropy
  Selection chat_template;                       ///< without a name: none
  std::vector<OptimizerGroup> optimizer_groups;  ///< in the order of the file
  Selection pipeline_schedule;                   ///< without a name with one pipeline rank
  std::vector<DataSource> sources;               ///< of the training data, at least one
  std::optional<DataSource> validation_source;   ///< when [validation] is enabled
  std::vector<Selection> loggers;     ///< metrics.loggers, and what metrics.enable_... add
  std::vector<Selection> watchers;    ///< those that keys select, then job.watchers
  std::vector<Selection> transforms;  ///< the converters, in the order of model.converters,
                                      ///< activation checkpointing, then the parallelisms that the
                                      ///< degrees select

  std::vector<AxisRequest> axis_requests;
  Layout layout;
  /// The actions of each pipeline rank in a step; null with one pipeline rank.
  std::shared_ptr<const PipelinePlan> pipeline_plan;
  int world_size = 1;

  /// Shared by the copies of a job. Null in a job that resolve() did not make.
  std::shared_ptr<const KeyPlaces> places;

  /// Everything above as a map of sections, component options included: to_toml(resolved) is an
  /// input that resolves to itself, to_json(resolved, 2) is what job.print_config logs. Unset
  /// options are left out, except those that are set by default: they are null (in TOML the word
  /// "None"). job.config_file is left out: it names the input.
  Value resolved;
};

/// The core's options: one table per section, nested tables inside, stored in the sections of a
/// JobConfig.
const Schema& job_schema();

/// The core's options of [data.sources.<name>], stored in a SourceSection.
const Schema& source_schema();
/// {"data", "sources", name}
KeyPath source_section(const std::string& name);

/// The core's options of [optimizer.groups.<name>], stored in an OptimizerGroupSection.
const Schema& optimizer_group_schema();
/// {"optimizer", "groups", name}
KeyPath optimizer_group_section(const std::string& name);

namespace job_schema_parts {
/// The groups of sections that make up job_schema(), in its order (job_schema_*.cpp).
void declare_run_sections(SchemaBuilder& schema);       ///< [plugins] to [lr_scheduler]
void declare_training_sections(SchemaBuilder& schema);  ///< [training] to [activation_checkpoint]
void declare_other_sections(SchemaBuilder& schema);     ///< [compile] to [debug]
void declare_dataloader(SchemaBuilder& schema);         ///< of training and of validation
}  // namespace job_schema_parts

}  // namespace titan::core
