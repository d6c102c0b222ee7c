// The implementation of FakeLookup, and a check that its base job is valid. All other tests of the
// configuration depend on that.
#include "core/config/fake_lookup.h"

#include <optional>

#include <gtest/gtest.h>
#include <titan/job_view.h>

#include "plugins/pipeline_schedules/looped/gpipe.h"
#include "plugins/pipeline_schedules/looped/interleaved.h"
#include "plugins/pipeline_schedules/looped/looped_bfs.h"
#include "plugins/pipeline_schedules/looped/one_forward_one_backward.h"
#include "plugins/pipeline_schedules/v_shaped/zbv_zero_bubble.h"

namespace titan::core {
namespace {

struct ScalingOptions {
  double factor = 1, low_freq_factor = 1;
};
struct ModelOptions {
  int64_t dim = 4096;
  int64_t n_layers = 32;
  std::optional<int64_t> n_kv_heads;
  double rope_theta = 500000;
  ScalingOptions rope_scaling;
};
struct TokenizerOptions {
  std::string file = "tokenizer.json";
};
struct AdamWOptions {
  double lr = 8e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  std::string implementation = "fused";
};
struct SgdOptions {
  double lr = 0.01, momentum = 0;
  bool nesterov = false;
};
struct ScheduleOptions {
  int64_t warmup_steps = 200;
  std::optional<int64_t> total_steps;
  std::optional<double> decay_ratio;
  std::string decay_type = "linear";
  double min_lr_factor = 0;
};
struct DatasetOptions {
  std::string field = "text";
  Bytes buffer = {1 << 20};
  Duration patience = {2.5};
  std::vector<int64_t> weights = {1, 2};
  std::optional<std::string> split = "train";
};
struct DdpOptions {
  int64_t bucket_size = 100;
};
struct FsdpOptions {
  std::string reshard_after_forward = "default", param_dtype = "as_stored",
              reduce_dtype = "as_stored";
  bool cpu_offload = false;
  int64_t own = 1;
};
struct TensorOptions {
  bool loss_parallel = true, async = false, sequence_parallel = true;
};
struct PipelineOptions {
  int64_t microbatch_size = 1, first_stage_less_layers = 1;
  std::optional<std::vector<std::vector<std::string>>> modules_per_stage;
};
struct ContextOptions {
  std::string rotate_method = "allgather", load_balancer = "headtail";
};
struct ScheduleTableOptions {
  int64_t depth = 1;
  std::string file;
};
struct LoggerOptions {
  int64_t every = 1;
};
struct CompileOptions {
  std::vector<std::string> components;
};

void declare_model(SchemaBuilder& schema) {
  schema.option("dim", &ModelOptions::dim, "Width")
      .at_least(1)
      .option("n_layers", &ModelOptions::n_layers, "Blocks")
      .at_least(1)
      .option("n_kv_heads", &ModelOptions::n_kv_heads, "Key and value heads")
      .at_least(1)
      .option("rope_theta", &ModelOptions::rope_theta, "Base of the rotary frequencies")
      .greater_than(0)
      .table("rope_scaling", &ModelOptions::rope_scaling, "Of long wavelengths",
             [](SchemaBuilder& table) {
               table.option("factor", &ScalingOptions::factor, "Factor")
                   .at_least(1)
                   .option("low_freq_factor", &ScalingOptions::low_freq_factor, "Lower bound")
                   .greater_than(0);
             });
}

void declare_adamw(SchemaBuilder& schema) {
  schema.option("lr", &AdamWOptions::lr, "Step size")
      .greater_than(0)
      .option("beta1", &AdamWOptions::beta1, "First moment's decay")
      .between(0, 1)
      .option("beta2", &AdamWOptions::beta2, "Second moment's decay")
      .between(0, 1)
      .option("eps", &AdamWOptions::eps, "Denominator's term")
      .greater_than(0)
      .option("weight_decay", &AdamWOptions::weight_decay, "Decay")
      .at_least(0)
      .option("implementation", &AdamWOptions::implementation, "Kernel")
      .one_of({"for-loop", "foreach", "fused"});
}

template <class Declare>
Component made(const char* kind, const char* name, Declare&& declare) {
  Component component;
  component.kind = kind;
  component.name = name;
  SchemaBuilder builder(component.schema);
  declare(builder);
  return component;
}

template <class Schedule>
void add_schedule(std::deque<Component>& components, const char* name) {
  Component component = made("pipeline_schedule", name, [](SchemaBuilder&) {});
  component.make = [](const void*, const void* context) -> void* {
    PipelineSchedule* made = new Schedule(*static_cast<const PipelineScheduleContext*>(context));
    return made;
  };
  components.push_back(std::move(component));
}

struct RecomputeOptions {
  bool early_stop = false;
  std::string selective_ac_option = "2";
  double memory_budget = 0.5;
};

struct QuantizeOptions {
  std::optional<std::string> recipe_name;
  std::vector<std::string> filter_fqns;
  bool emulate = false, all_gather = false, precompute = false;
  std::string cast_kernel = "triton";
};

struct ExpertOptions {
  int64_t degree = 1, tensor_degree = 1;
  bool even = false;
};

Value unless_stored_in_double(const Value& core, const JobView& job) {
  return job.core("training.dtype") == Value("float64") ? Value("as_stored") : core;
}

}  // namespace

FakeLookup::FakeLookup() {
  components_.push_back(made("model", "llama3", declare_model));
  components_.push_back(made("model", "llama2", declare_model));
  for (const char* name : {"huggingface", "sentencepiece", "tiktoken"})
    components_.push_back(made("tokenizer", name, [](SchemaBuilder& schema) {
      schema.option("file", &TokenizerOptions::file, "File in the assets folder");
    }));
  components_.push_back(made("optimizer", "AdamW", declare_adamw));
  components_.push_back(made("optimizer", "SGD", [](SchemaBuilder& schema) {
    schema.option("lr", &SgdOptions::lr, "Step size")
        .greater_than(0)
        .option("momentum", &SgdOptions::momentum, "Momentum")
        .at_least(0)
        .option("nesterov", &SgdOptions::nesterov, "Look ahead")
        .fed_by("training.enable_cpu_offload");
  }));
  components_.push_back(made("lr_scheduler", "warmup_stable_decay", [](SchemaBuilder& schema) {
    schema.option("warmup_steps", &ScheduleOptions::warmup_steps, "Warm-up")
        .at_least(0)
        .option("total_steps", &ScheduleOptions::total_steps, "Length")
        .at_least(1)
        .option("decay_ratio", &ScheduleOptions::decay_ratio, "Share of the decay")
        .between(0, 1)
        .option("decay_type", &ScheduleOptions::decay_type, "Shape")
        .one_of({"linear", "sqrt", "cosine"})
        .option("min_lr_factor", &ScheduleOptions::min_lr_factor, "Floor")
        .between(0, 1);
  }));
  components_.push_back(made("device", "cpu", [](SchemaBuilder&) {}));
  components_.push_back(made("parallelism", "ddp", [](SchemaBuilder& schema) {
    schema.option("bucket_size", &DdpOptions::bucket_size, "Of one all-reduce").at_least(1);
  }));
  components_.push_back(made("parallelism", "fsdp", [](SchemaBuilder& schema) {
    schema.option("reshard_after_forward", &FsdpOptions::reshard_after_forward, "Free early")
        .fed_by("parallelism.fsdp_reshard_after_forward",
                [](const Value& core, const JobView& job) {
                  return core == Value("default") && job.ranks("pp") > 1 ? Value("never") : core;
                })
        .option("param_dtype", &FsdpOptions::param_dtype, "Computes in")
        .fed_by("training.mixed_precision_param", unless_stored_in_double)
        .option("reduce_dtype", &FsdpOptions::reduce_dtype, "Reduces in")
        .fed_by("training.mixed_precision_reduce", unless_stored_in_double)
        .option("cpu_offload", &FsdpOptions::cpu_offload, "Keeps shards on the host")
        .fed_by("training.enable_cpu_offload")
        .option("own", &FsdpOptions::own, "Of its own");
  }));
  for (const char* name : {"tensor", "acme/tensor"})
    components_.push_back(made("parallelism", name, [](SchemaBuilder& schema) {
      schema.option("loss_parallel", &TensorOptions::loss_parallel, "Shards the vocabulary")
          .fed_by("parallelism.disable_loss_parallel",
                  [](const Value& core, const JobView&) { return Value(!core.as_boolean()); })
          .option("async", &TensorOptions::async, "Overlaps")
          .fed_by("parallelism.enable_async_tensor_parallel")
          .option("sequence_parallel", &TensorOptions::sequence_parallel, "Shards the sequence");
    }));
  for (const char* name : {"expert", "acme/experts"}) {
    components_.push_back(made("parallelism", name, [&](SchemaBuilder& schema) {
      schema.option("degree", &ExpertOptions::degree, "Ranks that share the experts")
          .fed_by("parallelism.expert_parallel_degree")
          .option("even", &ExpertOptions::even, "Deals tokens in turn")
          .fed_by("debug.moe_force_load_balance");
      if (std::string_view(name) == "expert")
        schema.option("tensor_degree", &ExpertOptions::tensor_degree, "Ranks that share each")
            .fed_by("parallelism.expert_tensor_parallel_degree");
    }));
    components_.back().axes = [](const void* options, AxisPlan& plan) {
      plan.borrow("ep", static_cast<const ExpertOptions*>(options)->degree, {"dp_shard"});
    };
  }
  components_.push_back(made("parallelism", "pipeline", [](SchemaBuilder& schema) {
    schema.option("microbatch_size", &PipelineOptions::microbatch_size, "Sequences")
        .fed_by("parallelism.pipeline_parallel_microbatch_size")
        .option("modules_per_stage", &PipelineOptions::modules_per_stage, "Explicit split")
        .fed_by("parallelism.module_fqns_per_model_part")
        .option("first_stage_less_layers", &PipelineOptions::first_stage_less_layers, "Weight")
        .fed_by("parallelism.pipeline_parallel_first_stage_less_layers");
  }));
  components_.push_back(made("parallelism", "context", [](SchemaBuilder& schema) {
    schema.option("rotate_method", &ContextOptions::rotate_method, "How keys travel")
        .fed_by("parallelism.context_parallel_rotate_method")
        .option("load_balancer", &ContextOptions::load_balancer, "How sequences are dealt")
        .fed_by("parallelism.context_parallel_load_balancer",
                [](const Value& core, const JobView&) {
                  return core.is_null() ? Value("none") : core;
                });
  }));
  add_schedule<pipeline_schedules::GPipe>(components_, "GPipe");
  add_schedule<pipeline_schedules::OneForwardOneBackward>(components_, "1F1B");
  add_schedule<pipeline_schedules::Interleaved1F1B>(components_, "Interleaved1F1B");
  add_schedule<pipeline_schedules::LoopedBfs>(components_, "LoopedBFS");
  add_schedule<pipeline_schedules::ZbvZeroBubble>(components_, "ZBVZeroBubble");
  add_schedule<pipeline_schedules::GPipe>(components_, "acme/staggered");
  SchemaBuilder(components_.back().schema)
      .option("depth", &ScheduleTableOptions::depth, "Of its own")
      .option("file", &ScheduleTableOptions::file, "A table")
      .fed_by("parallelism.pipeline_parallel_schedule_csv");
  for (const char* name : {"jsonl", "acme/web.text"})
    components_.push_back(made("dataset", name, [](SchemaBuilder& schema) {
      schema.option("field", &DatasetOptions::field, "Field of the text")
          .option("buffer", &DatasetOptions::buffer, "Read ahead")
          .at_least(1)
          .option("patience", &DatasetOptions::patience, "Time to wait")
          .option("weights", &DatasetOptions::weights, "Shares")
          .at_least(0)
          .option("split", &DatasetOptions::split, "Part");
    }));
  for (const char* name : {"console", "jsonl", "tensorboard", "wandb"})
    components_.push_back(made("logger", name, [](SchemaBuilder& schema) {
      schema.option("every", &LoggerOptions::every, "Lines between flushes").at_least(1);
    }));
  for (const char* name :
       {"debugging", "fingerprints", "parameter_statistics", "profiling", "task_scores"})
    components_.push_back(made("watcher", name, [](SchemaBuilder&) {}));
  components_.push_back(made("watcher", "acme/activations", [](SchemaBuilder& schema) {
    schema.option("every", &LoggerOptions::every, "Steps").at_least(1);
  }));
  for (const char* name : {"selective", "full", "memory_budget"})
    components_.push_back(made("activation_checkpoint", name, [&](SchemaBuilder& schema) {
      schema.option("early_stop", &RecomputeOptions::early_stop, "End early");
      if (std::string_view(name) == "selective")
        schema.option("selective_ac_option", &RecomputeOptions::selective_ac_option, "Every N-th");
      if (std::string_view(name) == "memory_budget")
        schema.option("memory_budget", &RecomputeOptions::memory_budget, "Share").between(0, 1);
    }));
  for (const char* name : {"fused", "acme/captured"})
    components_.push_back(made("compile_backend", name, [](SchemaBuilder& schema) {
      schema.option("components", &CompileOptions::components, "Parts")
          .fed_by("compile.components");
    }));
  for (const char* name : {"quantize.linear.float8", "quantize.linear.mx"})
    components_.push_back(made("converter", name, [](SchemaBuilder& schema) {
      schema.option("recipe_name", &QuantizeOptions::recipe_name, "Recipe")
          .one_of({"tensorwise", "rowwise", "mxfp8_cublas", "mxfp8_emulated"})
          .option("filter_fqns", &QuantizeOptions::filter_fqns, "Left alone")
          .option("emulate", &QuantizeOptions::emulate, "In software")
          .option("enable_fsdp_float8_all_gather", &QuantizeOptions::all_gather, "Gather in float8")
          .option("precompute_float8_dynamic_scale_for_fsdp", &QuantizeOptions::precompute,
                  "Scales")
          .option("mxfp8_dim1_cast_kernel_choice", &QuantizeOptions::cast_kernel, "Kernel");
    }));
  for (const char* name : {"quantize.grouped_mm.float8", "quantize.grouped_mm.mx"})
    components_.push_back(made("converter", name, [](SchemaBuilder& schema) {
      schema.option("fqns", &QuantizeOptions::filter_fqns, "Layers of experts");
    }));
  components_.push_back(made("converter", "acme/lora", [](SchemaBuilder& schema) {
    schema.option("every", &LoggerOptions::every, "Rank").at_least(1);
  }));
  flavors_ = {{"llama3", "debugmodel", "Small", Value::map({{"dim", 256}, {"n_layers", 6}})},
              {"llama3", "8B", "8 billion", Value::map({{"n_kv_heads", 8}})},
              {"llama3", "8B_flex", "8 billion, masks", Value::map({{"n_kv_heads", 8}})},
              {"llama3", "long", "Scaled",
               Value::map({{"rope_scaling", Value::map({{"factor", 8}, {"low_freq_factor", 4}})}})},
              {"llama3", "misfit", "Does not fit", Value::map({{"dim", 0}})},
              {"llama2", "7B", "7 billion", Value::map({{"rope_theta", 10000}})}};
}

const Component* FakeLookup::find(std::string_view kind, std::string_view name, std::string& why) {
  why.clear();
  for (const Component& component : components_)
    if (component.kind == kind && component.name == name) return &component;
  if (name == "acme/old") why = "  it was built for torch 2.10.0, this program has 2.11.0";
  return nullptr;
}

const Flavor* FakeLookup::flavor(std::string_view model, std::string_view name, std::string& why) {
  why.clear();
  for (const Flavor& flavor : flavors_)
    if (flavor.model == model && flavor.name == name) return &flavor;
  return nullptr;
}

std::vector<std::string> FakeLookup::names(std::string_view kind) {
  std::vector<std::string> names;
  if (kind == "flavor")
    for (const Flavor& flavor : flavors_) names.push_back(flavor.model + "/" + flavor.name);
  for (const Component& component : components_)
    if (component.kind == kind) names.push_back(component.name);
  return names;
}

Resolution resolve_text(const std::string& toml, std::vector<std::string> arguments,
                        int world_size) {
  FakeLookup lookup;
  return resolve(read_sources("train.toml", toml, std::move(arguments)), lookup,
                 {.world_size = world_size});
}

Resolution resolve_arguments(std::vector<std::string> arguments, int world_size) {
  return resolve_text(kBase, std::move(arguments), world_size);
}

std::string errors_of(const std::string& toml, std::vector<std::string> arguments, int world_size) {
  try {
    resolve_text(toml, std::move(arguments), world_size);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Diagnostics diagnostics_of(const std::string& toml, std::vector<std::string> arguments,
                           int world_size) {
  FakeLookup lookup;
  Diagnostics diagnostics;
  try_resolve(read_sources("train.toml", toml, std::move(arguments)), lookup,
              {.world_size = world_size}, diagnostics);
  return diagnostics;
}

std::vector<std::string> messages(const Diagnostics& diagnostics, Severity severity) {
  std::vector<std::string> texts;
  for (const Diagnostic& diagnostic : diagnostics.sorted())
    if (diagnostic.severity == severity) texts.push_back(diagnostic.message);
  return texts;
}

TEST(FakeLookup, BaseJobIsValidWithANote) {
  const Diagnostics diagnostics = diagnostics_of(kBase);
  EXPECT_EQ(messages(diagnostics, Severity::error), std::vector<std::string>{});
  EXPECT_EQ(messages(diagnostics, Severity::not_built), std::vector<std::string>{});
  EXPECT_EQ(messages(diagnostics, Severity::warning), std::vector<std::string>{});
  EXPECT_EQ(diagnostics.count(Severity::note), 1);
}

}  // namespace titan::core
