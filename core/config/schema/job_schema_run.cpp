// [plugins] to [chat_template]: the run as a whole, its components and its output.
#include "core/config/schema/job_config.h"

namespace titan::core::job_schema_parts {
namespace {

void declare_job(SchemaBuilder& schema) {
  using Section = JobSection;
  schema.option("config_file", &Section::config_file, "TOML file to read")
      .option("dump_folder", &Section::dump_folder, "Folder of all output")
      .option("description", &Section::description, "Free text, logged at the start")
      .option("print_config", &Section::print_config, "Log the resolved configuration as JSON")
      .option("save_config_file", &Section::save_config_file,
              "Write the resolved configuration as JSON to this file under dump_folder")
      .option("watchers", &Section::watchers,
              "Watchers, by name; their options are in [watcher.<name>]")
      .option("custom_config_module", &Section::custom_config_module,
              "No effect: options of plugins come from their own schemas");
}

void declare_profiling(SchemaBuilder& schema) {
  using Section = ProfilingSection;
  schema.option("enable_profiling", &Section::enable_profiling, "Write Chrome traces")
      .option("save_traces_folder", &Section::save_traces_folder,
              "Trace folder under job.dump_folder")
      .option("profile_freq", &Section::profile_freq, "Steps between traces")
      .at_least(1)
      .option("profiler_active", &Section::profiler_active, "Recorded steps of each cycle")
      .at_least(1)
      .option("profiler_warmup", &Section::profiler_warmup, "Warm-up steps of each cycle")
      .at_least(0)
      .option("compress_traces", &Section::compress_traces,
              "Compress traces with gzip (rank<R>_trace.json.gz)")
      .option("enable_memory_snapshot", &Section::enable_memory_snapshot,
              "Dump the allocator's history every profile_freq steps and when memory runs out")
      .option("save_memory_snapshot_folder", &Section::save_memory_snapshot_folder,
              "Snapshot folder under job.dump_folder");
}

void declare_metrics(SchemaBuilder& schema) {
  using Section = MetricsSection;
  schema.option("log_freq", &Section::log_freq, "Log at step 1 and every N steps")
      .at_least(1)
      .option("enable_tensorboard", &Section::enable_tensorboard, "Add the tensorboard logger")
      .option("disable_color_printing", &Section::disable_color_printing,
              "Print console lines without colours")
      .option("save_tb_folder", &Section::save_tb_folder,
              "TensorBoard folder under job.dump_folder")
      .option("save_for_all_ranks", &Section::save_for_all_ranks,
              "Write the metrics of every rank instead of one")
      .option("enable_wandb", &Section::enable_wandb, "Add the wandb logger")
      .option("loggers", &Section::loggers,
              "Loggers, by name; their options are in [logger.<name>]")
      .option("norms", &Section::norms,
              "Norms of weights and gradients at logged steps: of each layer or of each parameter",
              {{"none", NormsOf::none},
               {"layers", NormsOf::layers},
               {"parameters", NormsOf::parameters}})
      .option("histograms", &Section::histograms,
              "Names or patterns of parameters whose values and gradients are logged as histograms")
      .option("histogram_freq", &Section::histogram_freq,
              "Steps between histograms; only at logged steps")
      .at_least(1)
      .option(
          "peak_flops", &Section::peak_flops,
          "Peak FLOP/s of one device, for the MFU column; unset: the device plugin's own figure")
      .greater_than(0);
}

void declare_model(SchemaBuilder& schema) {
  using Section = ModelSection;
  schema.option("name", &Section::name, "Model; its sizes are keys of this section, too")
      .option("flavor", &Section::flavor,
              "Preset of the model's dimensions; empty: the model's defaults")
      .option("hf_assets_path", &Section::hf_assets_path,
              "Hugging Face folder with the tokenizer, config.json and weights")
      .option("converters", &Section::converters,
              "Converters to apply to the model, in this order; options in [converter.<name>], "
              "those of quantize.* in [quantize...]")
      .option("print_after_conversion", &Section::print_after_conversion,
              "Print the layers after conversion");
}

}  // namespace

void declare_run_sections(SchemaBuilder& schema) {
  schema
      .table("plugins", &JobConfig::plugins, "Search path of plugins",
             [](SchemaBuilder& section) {
               section
                   .option("paths", &PluginsSection::paths,
                           "Folders searched before TITAN_PLUGIN_PATH and the installation")
                   .option("lock", &PluginsSection::lock,
                           "Lock file that lists the plugins which may be loaded, with their "
                           "SHA-256; unset: <configuration>.lock next to the configuration, if it "
                           "exists")
                   .option("allow_unsigned", &PluginsSection::allow_unsigned,
                           "Load plugins that the lock file does not list, with a warning");
             })
      .table("job", &JobConfig::job, "The job as a whole", declare_job)
      .table("profiling", &JobConfig::profiling, "Traces and memory snapshots", declare_profiling)
      .table("metrics", &JobConfig::metrics, "Metrics and loggers", declare_metrics)
      .table("model", &JobConfig::model, "The model", declare_model)
      .table("tokenizer", &JobConfig::tokenizer_section, "The tokenizer and its options",
             [](SchemaBuilder& section) {
               section.option("name", &TokenizerSection::name, "Tokenizer");
             })
      .table("optimizer", &JobConfig::optimizer_section, "The optimizer and its options",
             [](SchemaBuilder& section) {
               section.option("name", &OptimizerSection::name, "Optimizer")
                   .option("early_step_in_backward", &OptimizerSection::early_step_in_backward,
                           "Update each parameter inside the backward pass, as soon as its "
                           "gradient is complete");
             })
      .table("lr_scheduler", &JobConfig::lr_scheduler_section,
             "The learning rate's schedule and its options",
             [](SchemaBuilder& section) {
               section.option("name", &LrSchedulerSection::name, "Schedule");
             })
      .table("loss", &JobConfig::loss_section,
             "The loss, instead of the model's own cross entropy, and its options",
             [](SchemaBuilder& section) {
               section.option("name", &LossSection::name, "Loss; unset: cross entropy");
             })
      .table("reference", &JobConfig::reference,
             "The frozen reference model of losses that use one",
             [](SchemaBuilder& section) {
               section.option("checkpoint", &ReferenceSection::checkpoint,
                              "Reference model of losses that use one: a checkpoint or a Hugging "
                              "Face folder; unset: the weights that the run starts from");
             })
      .table("chat_template", &JobConfig::chat_template_section,
             "The chat template of conversations and its options", [](SchemaBuilder& section) {
               section.option("name", &ChatTemplateSection::name,
                              "Chat template, for data sets of conversations");
             });
}

}  // namespace titan::core::job_schema_parts
