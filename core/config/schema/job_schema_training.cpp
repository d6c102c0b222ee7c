// [training] to [activation_checkpoint]: the step, its data, its layout over ranks, checkpoints and
// memory.
#include "core/config/schema/job_config.h"

namespace titan::core::job_schema_parts {
namespace {

void declare_loss_scaling(SchemaBuilder& schema) {
  using Section = LossScalingSection;
  schema.option("initial", &Section::initial, "Loss scale of the first step (float16 only)")
      .greater_than(0)
      .option("growth_factor", &Section::growth_factor,
              "Factor by which the scale grows after growth_interval steps without an overflow")
      .at_least(1)
      .option("backoff_factor", &Section::backoff_factor,
              "Factor by which the scale shrinks after an overflow")
      .greater_than(0)
      .less_than(1)
      .option("growth_interval", &Section::growth_interval, "Steps")
      .at_least(1)
      .option("minimum", &Section::minimum, "An overflow at this scale ends the run")
      .greater_than(0);
}

void declare_training(SchemaBuilder& schema) {
  using Section = TrainingSection;
  schema
      .option("dataset", &Section::dataset, "Dataset, by name; its options are in [dataset.<name>]")
      .option("dataset_path", &Section::dataset_path, "Local path instead of the dataset's own")
      .option("local_batch_size", &Section::local_batch_size,
              "Sequences per data-parallel rank and accumulation round")
      .at_least(1)
      .option("global_batch_size", &Section::global_batch_size,
              "Sequences per step over all ranks; negative: one accumulation round")
      .option("seq_len", &Section::seq_len, "Tokens per sequence")
      .at_least(1)
      .option("max_norm", &Section::max_norm, "Clip gradients to this global norm; 0: do not clip")
      .at_least(0)
      .option("steps", &Section::steps, "Training steps")
      .at_least(1)
      .option("enable_cpu_offload", &Section::enable_cpu_offload,
              "Keep parameters, gradients and optimizer states in host memory")
      .option(
          "dtype", &Section::dtype, "Data type of parameters, gradients and optimizer states",
          {{"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}, {"float64", Dtype::float64}})
      .option(
          "mixed_precision_param", &Section::mixed_precision_param,
          "Data type of the computation; dtype = \"float64\" computes in float64",
          {{"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}, {"float16", Dtype::float16}})
      .option("mixed_precision_reduce", &Section::mixed_precision_reduce,
              "Data type in which gradients are reduced",
              {{"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}})
      .option("gc_freq", &Section::gc_freq, "Ignored (accepted for torchtitan compatibility)")
      .at_least(1)
      .option("gc_debug", &Section::gc_debug, "Ignored (accepted for torchtitan compatibility)")
      .table("loss_scaling", &Section::loss_scaling,
             "Scale of the loss where mixed_precision_param = \"float16\"", declare_loss_scaling)
      .table("dataloader", &Section::dataloader, "Background loading of training data",
             declare_dataloader);
}

void declare_data(SchemaBuilder& schema) {
  using Section = DataSection;
  schema
      .option("packing", &Section::packing,
              "How documents fill sequences: concatenated and cut, or kept whole and padded",
              {{"concatenate", Packing::concatenate}, {"best_fit", Packing::best_fit}})
      .option("isolate_documents", &Section::isolate_documents,
              "Restart positions at each document and attend within the document only")
      .option("labels_cross_documents", &Section::labels_cross_documents,
              "Let the last token of a document predict the first token of the next")
      .option("too_long", &Section::too_long,
              "Conversations longer than a sequence: an error, skipped, or cut at the end (pairs "
              "that are compared are skipped)",
              {{"error", TooLong::error}, {"skip", TooLong::skip}, {"truncate", TooLong::truncate}})
      .option("shuffle", &Section::shuffle, "Shuffle the documents anew in every epoch, by seed")
      .option("shuffle_buffer", &Section::shuffle_buffer,
              "Documents of a stream that are shuffled together, for streamed data")
      .at_least(1)
      .option("timeout", &Section::timeout, "Longest wait for data before the run fails")
      .greater_than(0);
}

void declare_parallelism(SchemaBuilder& schema) {
  using Section = ParallelismSection;
  schema
      .option("data_parallel_replicate_degree", &Section::data_parallel_replicate_degree,
              "Replicas of the model; with sharding inside each: HSDP")
      .at_least(1)
      .option("data_parallel_shard_degree", &Section::data_parallel_shard_degree,
              "Ranks over which parameters are sharded; -1: all remaining ranks")
      .at_least(-1)
      .option("fsdp_reshard_after_forward", &Section::fsdp_reshard_after_forward,
              "Free gathered parameters after the forward pass; default: yes, but not in pipelines",
              {{"default", ReshardAfterForward::standard},
               {"always", ReshardAfterForward::always},
               {"never", ReshardAfterForward::never}})
      .option("tensor_parallel_degree", &Section::tensor_parallel_degree,
              "Ranks over which each layer is split")
      .at_least(1)
      .option("disable_loss_parallel", &Section::disable_loss_parallel,
              "Replicate the logits instead of sharding the vocabulary")
      .option("enable_async_tensor_parallel", &Section::enable_async_tensor_parallel,
              "Overlap tensor-parallel communication with the matrix products")
      .option("pipeline_parallel_degree", &Section::pipeline_parallel_degree,
              "Ranks over which the layers are divided")
      .at_least(1)
      .option("module_fqns_per_model_part", &Section::module_fqns_per_model_part,
              "Explicit split into stages: one list of layer names each")
      .option("pipeline_parallel_first_stage_less_layers",
              &Section::pipeline_parallel_first_stage_less_layers,
              "Cost of the embedding, in layers, for the split into stages")
      .at_least(0)
      .option("pipeline_parallel_last_stage_less_layers",
              &Section::pipeline_parallel_last_stage_less_layers,
              "Cost of the final norm and head, in layers, for the split into stages")
      .at_least(0)
      .option("pipeline_parallel_layers_per_stage", &Section::pipeline_parallel_layers_per_stage,
              "Layers per stage; unset: as many stages as the schedule usually has")
      .at_least(1)
      .option("pipeline_parallel_schedule", &Section::pipeline_parallel_schedule,
              "Pipeline schedule, by name; case is ignored")
      .option("pipeline_parallel_schedule_csv", &Section::pipeline_parallel_schedule_csv,
              "File with a schedule table, instead of a named schedule")
      .option("pipeline_parallel_microbatch_size", &Section::pipeline_parallel_microbatch_size,
              "Sequences per microbatch; must divide training.local_batch_size")
      .at_least(1)
      .option("pipeline_parallel_expert_parallel_overlap",
              &Section::pipeline_parallel_expert_parallel_overlap,
              "Overlap expert communication in DualPipeV")
      .option("context_parallel_degree", &Section::context_parallel_degree,
              "Ranks over which each sequence is split")
      .at_least(1)
      .option("context_parallel_load_balancer", &Section::context_parallel_load_balancer,
              "How a sequence is split over the ranks")
      .one_of({"headtail", "ptrr"})
      .option("context_parallel_rotate_method", &Section::context_parallel_rotate_method,
              "Collective for keys and values",
              {{"allgather", RotateMethod::allgather}, {"alltoall", RotateMethod::alltoall}})
      .option("expert_parallel_degree", &Section::expert_parallel_degree,
              "Ranks over which experts are divided")
      .at_least(1)
      .option("expert_tensor_parallel_degree", &Section::expert_tensor_parallel_degree,
              "Ranks over which each expert is split")
      .at_least(1)
      .option("expert_parallel_comm_backend", &Section::expert_parallel_comm_backend,
              "How tokens are sent to experts",
              {{"standard", ExpertBackend::standard}, {"deepep", ExpertBackend::deepep}})
      .option("data_parallel", &Section::data_parallel,
              "Plugin of the data-parallel axes; auto: fsdp, or ddp for replicas alone")
      .option("tensor_parallel", &Section::tensor_parallel, "Plugin of the tensor axis")
      .option("pipeline_parallel", &Section::pipeline_parallel, "Plugin of the pipeline axis")
      .option("context_parallel", &Section::context_parallel, "Plugin of the context axis")
      .option("expert_parallel", &Section::expert_parallel, "Plugin of expert parallelism")
      .option("further", &Section::further, "Further parallelism plugins");
}

void declare_checkpoint(SchemaBuilder& schema) {
  using Section = CheckpointSection;
  schema.option("enable", &Section::enable, "Save and load checkpoints")
      .option("enable_ft_dataloader_checkpoints", &Section::enable_ft_dataloader_checkpoints,
              "No effect: one checkpoint holds the data positions of all rows")
      .option("folder", &Section::folder, "Checkpoint folder under job.dump_folder")
      .option("interval", &Section::interval, "Save every N steps and after the last one")
      .at_least(1)
      .option("initial_load_path", &Section::initial_load_path,
              "Folder to start from: a checkpoint, a folder of checkpoints, or safetensors; "
              "ignored when the run resumes from its own newest complete checkpoint")
      .option("initial_load_model_only", &Section::initial_load_model_only,
              "Take only the weights from initial_load_path")
      .option("initial_load_in_hf", &Section::initial_load_in_hf,
              "Start from Hugging Face safetensors")
      .option("initial_load_in_hf_quantized", &Section::initial_load_in_hf_quantized,
              "Accept quantized weights and dequantize them")
      .option("last_save_model_only", &Section::last_save_model_only,
              "The final save holds weights only")
      .option("last_save_in_hf", &Section::last_save_in_hf,
              "Final save as Hugging Face safetensors")
      .option(
          "export_dtype", &Section::export_dtype,
          "Data type of a final save that holds weights only",
          {{"float16", Dtype::float16}, {"bfloat16", Dtype::bfloat16}, {"float32", Dtype::float32}})
      .option("async_mode", &Section::async_mode, "Write in the background",
              {{"disabled", AsyncMode::disabled},
               {"async", AsyncMode::async},
               {"async_with_pinned_mem", AsyncMode::async_with_pinned_mem}})
      .option("keep_latest_k", &Section::keep_latest_k, "Checkpoints kept; 0: all")
      .at_least(0)
      .option("load_step", &Section::load_step, "Step to load; -1: the newest complete one")
      .at_least(-1)
      .option("exclude_from_loading", &Section::exclude_from_loading,
              "Parts of the checkpoint that are not loaded")
      .one_of({"optimizer", "lr_scheduler", "dataloader", "train_state"})
      .option("take_on_trust", &Section::take_on_trust,
              "Checks to skip when loading weights: model_options (options may differ), row_order "
              "(assume Titan's order of rotary rows)")
      .one_of({"model_options", "row_order"})
      .option("enable_first_step_checkpoint", &Section::enable_first_step_checkpoint,
              "Save after step 1 too")
      .option("create_seed_checkpoint", &Section::create_seed_checkpoint,
              "Write the initial weights from one rank and exit")
      .option("load_only", &Section::load_only, "Never save")
      .option(
          "local_folder", &Section::local_folder,
          "Folder on a fast disk of each host, such as /dev/shm/titan, for frequent checkpoints "
          "from which a restart continues; unset: none")
      .option("local_interval", &Section::local_interval, "Write a local checkpoint every N steps")
      .at_least(1)
      .option(
          "local_copies", &Section::local_copies,
          "Copies of each rank's part of a local checkpoint, on another host if there are several")
      .at_least(0)
      .at_most(1);
}

void declare_activation_checkpoint(SchemaBuilder& schema) {
  using Section = ActivationCheckpointSection;
  schema
      .option("mode", &Section::mode,
              "Activation checkpointing, by name; \"none\" keeps all activations")
      .option("memory_limit", &Section::memory_limit,
              "With mode = \"memory_budget\": memory limit of a rank, instead of memory_budget");
}

}  // namespace

void declare_dataloader(SchemaBuilder& schema) {
  using Section = DataloaderSection;
  schema.option("num_workers", &Section::num_workers, "Loader threads")
      .at_least(0)
      .option("persistent_workers", &Section::persistent_workers, "Keep the threads between epochs")
      .option("pin_memory", &Section::pin_memory, "Put batches into pinned host memory")
      .option("prefetch_factor", &Section::prefetch_factor, "Batches ahead per thread")
      .at_least(1);
}

void declare_training_sections(SchemaBuilder& schema) {
  schema.table("training", &JobConfig::training, "The training step and its data", declare_training)
      .table("data", &JobConfig::data,
             "From documents to sequences; blends in [data.sources.<name>]", declare_data)
      .table("device", &JobConfig::device_section, "The device and its options",
             [](SchemaBuilder& section) { section.option("name", &DeviceSection::name, "Device"); })
      .table("parallelism", &JobConfig::parallelism, "Layout of the work over ranks",
             declare_parallelism)
      .table("checkpoint", &JobConfig::checkpoint, "Checkpoints", declare_checkpoint)
      .table("activation_checkpoint", &JobConfig::activation_checkpoint,
             "Recomputation of activations", declare_activation_checkpoint);
}

}  // namespace titan::core::job_schema_parts
