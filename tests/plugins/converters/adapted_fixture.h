// A model part with adapters under a given layout. Used by the tests of the LoRA converter.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <titan/model.h>
#include <titan/transform.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::lora_test {

using testing::create;
using testing::kSeed;
using testing::make_cpu;

inline bool is_adapter(const std::string& name) {
  return name.ends_with(".lora_a.weight") || name.ends_with(".lora_b.weight");
}

inline Value lora_options(std::initializer_list<Value> targets) {
  return Value::map({{"rank", 3}, {"alpha", 6.0}, {"targets", Value::list(targets)}});
}

/// A part with adapters whose B, initially zero, has values as well.
struct Adapted {
  Adapted(std::vector<Layer> layers, const dist::Mesh& mesh, const Value& options,
          const std::vector<std::pair<std::string, Value>>& parallelisms = {})
      : device(make_cpu()), part(std::move(layers)) {
    const TransformContext context{.mesh = mesh, .device = *device, .parameter_dtype = at::kDouble};
    lora = create<Converter>("lora", options, context);
    lora->apply(part, context);
    for (const auto& [name, settings] : parallelisms) {
      transforms.push_back(create<Parallelism>(name, settings, context));
      transforms.back()->apply(part, context);
    }
    part.materialize(c10::kCPU, at::kDouble, kSeed);
    for (nn::Parameter* p : part.parameters()) {
      if (!p->name().ends_with(".lora_b.weight")) continue;
      at::Tensor shard = p->shard().detach();
      nn::fill(shard, nn::Init::normal(0, 0.1), kSeed, p->name() + "*", p->global_shape(),
               p->slice());
    }
  }

  double run_step(const std::vector<Batch>& microbatches) {
    auto* reducer =
        transforms.empty() ? nullptr : dynamic_cast<GradientReducer*>(transforms.back().get());
    double sum = 0;
    for (size_t i = 0; i < microbatches.size(); ++i) {
      if (reducer) reducer->start_microbatch(i + 1 == microbatches.size());
      const at::Tensor loss = part.forward(at::Tensor(), microbatches[i]) / 64.0;
      loss.backward();
      sum += loss.item<double>();
    }
    if (reducer) reducer->finish_gradients();
    return sum;
  }

  std::unique_ptr<Optimizer> make_adamw() {
    return create<Optimizer>("AdamW", Value::map({{"lr", 0.01}}), {part.parameters()});
  }

  nn::Parameter& parameter(const std::string& name) {
    for (nn::Parameter* p : part.parameters())
      if (p->name() == name) return *p;
    throw std::out_of_range(name);
  }

  std::unique_ptr<Device> device;
  ModelPart part;
  std::unique_ptr<Converter> lora;
  std::vector<std::unique_ptr<Parallelism>> transforms;
};

}  // namespace titan::lora_test
