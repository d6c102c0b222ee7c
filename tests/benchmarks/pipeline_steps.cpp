// Step times of every pipeline schedule on 4 ranks, compared with the simulation's prediction. The
// ranks are threads that run the real executor. Their layers compute by sleeping, so four of them
// are busy at once on any machine. Prints one JSON object per schedule.
//
//   pipeline_steps [milliseconds per layer and pass] [microbatches]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/zeros.h>
#include <titan/model.h>
#include <titan/nn/weight_gradients.h>
#include <titan/pipeline_schedule.h>
#include <titan/pipelines/analysis.h>
#include <titan/transform.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/pipeline/plan.h"
#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan {
namespace {

constexpr int kRanks = 4, kLayers = 8, kSteps = 5, kWidth = 8, kTokens = 4;

std::chrono::microseconds pass{5000};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// x + weight: one pass forward, one for the gradient of x and one for the weight's.
struct Sleep : torch::autograd::Function<Sleep> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& value, nn::Parameter* weight) {
    ctx->saved_data["weight"] = reinterpret_cast<int64_t>(weight);
    ctx->saved_data["queue"] = reinterpret_cast<int64_t>(nn::WeightGradientQueue::current().get());
    std::this_thread::sleep_for(pass);
    return x + value;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    auto* weight = reinterpret_cast<nn::Parameter*>(ctx->saved_data["weight"].toInt());
    auto* queue = reinterpret_cast<nn::WeightGradientQueue*>(ctx->saved_data["queue"].toInt());
    std::this_thread::sleep_for(pass);
    const at::Tensor gradient = grads[0].sum(at::IntArrayRef({0, 1}));
    const auto work = [weight, gradient] {
      std::this_thread::sleep_for(pass);
      weight->add_gradient(gradient);
    };
    if (queue && queue->is_deferring())
      queue->add(work);
    else
      work();
    return {grads[0], at::Tensor(), at::Tensor()};
  }
};

class SleepingLayer final : public nn::Module {
 public:
  explicit SleepingLayer(bool is_first, bool is_last)
      : weight_(add_parameter("weight", {kWidth}, nn::Init::normal(0, 1))),
        is_first_(is_first),
        is_last_(is_last) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor input = is_first_ ? at::zeros({batch.tokens.size(0), kTokens, kWidth}) : x;
    const at::Tensor y = Sleep::apply(input, weight_.value(), &weight_);
    return is_last_ ? y.sum() : y;
  }

 private:
  nn::Parameter& weight_;
  bool is_first_, is_last_;
};

std::vector<Layer> sleeping_layers() {
  std::vector<Layer> layers;
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    layers.push_back(
        {name, std::make_unique<SleepingLayer>(i == 0, i == kLayers - 1), name, kWidth});
  }
  return layers;
}

/// Seconds of the median step on the slowest rank.
double measure(const PipelinePlan& plan) {
  std::mutex mutex;
  double slowest = 0;
  testing::run_ranks({.pp = kRanks}, [&](const dist::Mesh& mesh) {
    const auto device = testing::make_cpu();
    ModelPart part(sleeping_layers());
    const TransformContext context{
        .mesh = mesh, .device = *device, .parameter_dtype = at::kFloat, .pipeline = &plan};
    const auto pipeline = testing::create<Parallelism>("pipeline", Value::map(), context);
    pipeline->apply(part, context);
    auto& executor = dynamic_cast<StepExecutor&>(*pipeline);
    executor.connect({part, *device, {}, {}, mesh.recorder()});
    part.materialize(c10::kCPU, at::kFloat, 1);
    Batch batch{.tokens = at::zeros({plan.shape.num_microbatches, kTokens},
                                    at::TensorOptions().dtype(at::kLong))};
    StepBatches batches{.microbatches = {batch}, .num_valid_tokens = 1};
    std::vector<double> times;
    for (int step = 0; step <= kSteps; ++step) {
      mesh.group("world").barrier();
      const double begin = now();
      executor.forward_backward(batches);
      mesh.group("world").barrier();
      if (step > 0) times.push_back(now() - begin);  // the first step connects the ranks
    }
    std::nth_element(times.begin(), times.begin() + kSteps / 2, times.end());
    const std::lock_guard lock(mutex);
    slowest = std::max(slowest, times[kSteps / 2]);
  });
  return slowest;
}

int run(int argc, char** argv) {
  if (argc > 1) pass = std::chrono::microseconds(static_cast<int64_t>(std::atof(argv[1]) * 1000));
  const int num_microbatches = argc > 2 ? std::atoi(argv[2]) : 8;
  const double seconds = static_cast<double>(pass.count()) / 1e6;
  for (const char* name : {"GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble",
                           "ZBVZeroBubble", "DualPipeV"}) {
    const auto schedule = testing::create<PipelineSchedule>(name, Value::map(), {});
    const PipelinePlan plan = core::make_plan(*schedule, name,
                                              {.num_ranks = kRanks,
                                               .num_stages = schedule->default_num_stages(kRanks),
                                               .num_microbatches = num_microbatches});
    // one unit: one layer, one pass
    const double layers_per_stage = static_cast<double>(kLayers) / plan.shape.num_stages;
    const PipelineAnalysis predicted =
        analyze(plan, {layers_per_stage, layers_per_stage, layers_per_stage});
    const double measured = measure(plan);
    std::printf(
        "{\"schedule\": \"%s\", \"ranks\": %d, \"stages\": %d, \"microbatches\": %d, "
        "\"predicted\": %.4f, \"measured\": %.4f, \"bubble\": %.4f}\n",
        name, kRanks, plan.shape.num_stages, num_microbatches, predicted.makespan * seconds,
        measured, predicted.mean_bubble());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace titan

int main(int argc, char** argv) {
  return titan::run(argc, argv);
}
