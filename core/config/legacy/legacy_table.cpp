// The table of old names.
#include "core/config/legacy/legacy_names.h"

#include <memory>

namespace titan::core {
namespace {

using enum Translation;
constexpr OptionType kFlag = OptionType::boolean;
constexpr OptionType kInteger = OptionType::integer;
constexpr OptionType kNumber = OptionType::number;
constexpr OptionType kWord = OptionType::string;
constexpr OptionType kList = OptionType::list;

constexpr std::string_view kSchedule =
    "[lr_scheduler] has warmup_steps, total_steps, decay_ratio, decay_type and min_lr_factor";

constexpr OldName kOldNames[] = {
    {"job.use_for_integration_test", "", no_effect, kFlag},

    {"metrics.rank_0_only", "metrics.save_for_all_ranks", inverted, kFlag},
    {"metrics.enable_color_printing", "metrics.disable_color_printing", inverted, kFlag},

    {"model.norm_type", "", norm_type, kWord},
    {"model.tokenizer_path", "model.hf_assets_path", same, kWord},
    {"model.use_flex_attn", "model.flavor", flex_attention, kFlag},
    {"model.attn_mask_type", "model.flavor", attention_mask, kWord},
    {"model.compile", "compile.enable", same, kFlag},

    {"optimizer.fused", "optimizer.implementation", fused, kFlag},
    {"lr_scheduler.lr_min", "lr_scheduler.min_lr_factor", same, kNumber},

    {"training.batch_size", "training.local_batch_size", same, kInteger},
    {"training.warmup_steps", "lr_scheduler.warmup_steps", same, kInteger},
    {"training.warmup_pct", "", refused, kNumber, kSchedule},
    {"training.decay_steps", "", refused, kInteger, kSchedule},
    {"training.decay_ratio", "", refused, kNumber, kSchedule},
    {"training.decay_type", "", refused, kWord, kSchedule},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree", same,
     kInteger},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree", same,
     kInteger},
    {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree", same, kInteger},
    {"training.data_parallel_type", "", data_parallel_type, kWord},
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree", same, kInteger},
    {"training.enable_loss_parallel", "parallelism.disable_loss_parallel", inverted, kFlag},
    {"training.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel", same,
     kFlag},
    {"training.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree", same, kInteger},
    {"training.context_parallel_degree", "parallelism.context_parallel_degree", same, kInteger},
    {"training.compile", "compile.enable", same, kFlag},
    {"training.enable_compile", "compile.enable", same, kFlag},
    {"training.enable_fp8_linear", "model.converters", append_float8, kFlag},
    {"training.fp8_linear", "model.converters", append_float8, kWord},
    {"training.enable_fsdp_fp8_all_gather", "quantize.linear.float8.enable_fsdp_float8_all_gather",
     same, kFlag},
    {"training.precompute_float8_dynamic_scale_for_fsdp",
     "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", same, kFlag},
    {"training.seed", "debug.seed", same, kInteger},
    {"training.deterministic", "debug.deterministic", same, kFlag},

    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree", same,
     kInteger},
    {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule", schedule,
     kWord},
    {"experimental.pipeline_parallel_schedule_csv", "parallelism.pipeline_parallel_schedule_csv",
     same, kWord},
    {"experimental.pipeline_parallel_split_points", "parallelism.module_fqns_per_model_part",
     split_points, kList},
    {"experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatch_size",
     microbatches, kInteger},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree", same, kInteger},
    {"experimental.context_parallel_rotate_method", "parallelism.context_parallel_rotate_method",
     same, kWord},
    {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel", same,
     kFlag},
    {"parallelism.pipeline_parallel_split_points", "parallelism.module_fqns_per_model_part",
     split_points, kList},

    {"checkpoint.enable_checkpoint", "checkpoint.enable", same, kFlag},
    {"checkpoint.interval_type", "", interval_type, kWord},
    {"checkpoint.model_weights_only", "checkpoint.last_save_model_only", same, kFlag},
    {"checkpoint.last_save_model_weights_only", "checkpoint.last_save_model_only", same, kFlag},
    {"checkpoint.initial_load_model_weights_only", "checkpoint.initial_load_model_only", same,
     kFlag},

    {"float8.enable_float8_linear", "model.converters", append_float8, kFlag},
    {"float8.enable_fsdp_float8_all_gather", "quantize.linear.float8.enable_fsdp_float8_all_gather",
     same, kFlag},
    {"float8.precompute_float8_dynamic_scale_for_fsdp",
     "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", same, kFlag},
    {"float8.recipe_name", "quantize.linear.float8.recipe_name", same, kWord},
    {"float8.filter_fqns", "quantize.linear.float8.filter_fqns", same, kList},
    {"float8.emulate", "quantize.linear.float8.emulate", same, kFlag},
    {"float8.force_recompute_fp8_weight_in_bwd", "", no_effect, kFlag},
    {"float8.scaling_type_input", "", no_effect, kWord},
    {"float8.scaling_type_weight", "", no_effect, kWord},
    {"float8.scaling_type_grad_output", "", no_effect, kWord},
    {"float8.moe_fqns", "quantize.grouped_mm.float8.fqns", same, kList},
    {"float8.moe_fqns_prototype", "quantize.grouped_mm.float8.fqns", same, kList},

    {"mx.recipe_name", "quantize.linear.mx.recipe_name", mx_recipe, kWord},
    {"mx.filter_fqns", "quantize.linear.mx.filter_fqns", same, kList},
    {"mx.mxfp8_dim1_cast_kernel_choice", "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", same,
     kWord},
    {"mx.moe_fqns_prototype", "quantize.grouped_mm.mx.fqns", same, kList},
    {"mxfp8.recipe_name", "quantize.linear.mx.recipe_name", mx_recipe, kWord},
    {"mxfp8.filter_fqns", "quantize.linear.mx.filter_fqns", same, kList},
    {"mxfp8.mxfp8_dim1_cast_kernel_choice", "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice",
     same, kWord},
    {"mxfp8.moe_fqns_prototype", "quantize.grouped_mm.mx.fqns", same, kList},

    {"memory_estimation.enabled", "memory_estimation.enable", same, kFlag},
};

std::vector<Option> make_flags() {
  std::vector<Option> flags;
  for (const OldName& name : kOldNames) {
    Option& option = flags.emplace_back();
    option.name = name.old_key;
    option.type = name.flag;
    if (option.type == OptionType::list) option.element = std::make_shared<Option>();
  }
  return flags;
}

}  // namespace

std::span<const OldName> old_names() {
  return kOldNames;
}

std::string_view current_model_name(std::string_view name) {
  return name == "llama3_ft" ? "llama3" : name;
}

std::string_view current_converter_name(std::string_view name) {
  if (name == "float8") return "quantize.linear.float8";
  if (name == "mx" || name == "mxfp8") return "quantize.linear.mx";
  return name;
}

void add_old_flags(OptionTable& table) {
  static const std::vector<Option> kFlags = make_flags();
  for (const Option& option : kFlags) table.add_old_name(option);
}

}  // namespace titan::core
