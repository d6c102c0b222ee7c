// A parallelism that makes one rank compute wrong products: one bit of the output of a layer is
// flipped. Used by tests of watcher 'replay'.
#include <algorithm>
#include <cstdint>
#include <string>

#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct BitFlipOptions {
  int64_t rank = 0;
  int64_t step = 2;
  int64_t call = 1;   // of the forward of the layer within the step, over all its runs
  int64_t layer = 1;  // among the rank's layers; the last if there are fewer
  int64_t bit = 22;   // of a float; 22: the highest of the mantissa
  int64_t elements = 1;
  std::string kind = "passing";
};

/// passing: one call of one step. lasting: every call from that step on, each time another element.
/// stuck: every call from that step on, always the same element.
/// update: the weights of the first parameter, after that step.
class BitFlip final : public titan::Parallelism,
                      public titan::StepMember,
                      public titan::AfterOptimizerStep {
 public:
  BitFlip(const BitFlipOptions& options, const titan::TransformContext&) : options_(options) {}

  titan::Phase phase() const override { return titan::Phase::recompute; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    if (context.mesh.rank() != options_.rank) return;
    part_ = &part;
    const auto place = std::min(static_cast<size_t>(options_.layer), part.layers().size() - 1);
    part.layers()[place].module->wrap(
        [this](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
          at::Tensor y = next(x, batch);
          if (strikes()) flip(y, options_.kind == "stuck" ? 0 : num_flips_++);
          return y;
        });
  }

  bool undoes_steps() const override { return false; }
  void begin(titan::Step& step) override {
    if (step.number != step_) num_calls_ = 0;
    step_ = step.number;
  }
  void after_optimizer_step() override {
    if (part_ && options_.kind == "update" && step_ == options_.step)
      flip(part_->parameters()[0]->shard(), 0);
  }

 private:
  bool strikes() {
    ++num_calls_;
    if (options_.kind == "lasting" || options_.kind == "stuck") return step_ >= options_.step;
    return options_.kind == "passing" && step_ == options_.step && num_calls_ == options_.call;
  }

  /// Autograd does not notice.
  void flip(const at::Tensor& tensor, int64_t element) const {
    TITAN_CHECK(tensor.is_cpu() && tensor.scalar_type() == at::kFloat, config,
                "bits are flipped in floats of the CPU only");
    auto* bits = static_cast<uint32_t*>(tensor.mutable_data_ptr());
    for (int64_t i = 0; i < options_.elements; ++i)
      bits[(element + i) % tensor.numel()] ^= 1u << options_.bit;
  }

  BitFlipOptions options_;
  titan::ModelPart* part_ = nullptr;
  int64_t step_ = 0, num_calls_ = 0, num_flips_ = 0;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<BitFlip>("test/bit_flip", "Makes one rank compute wrong products.")
      .option("rank", &BitFlipOptions::rank, "Which")
      .option("step", &BitFlipOptions::step, "When")
      .option("call", &BitFlipOptions::call, "In which forward of the step")
      .option("layer", &BitFlipOptions::layer, "Where")
      .at_least(0)
      .option("bit", &BitFlipOptions::bit, "Which bit")
      .between(0, 31)
      .option("elements", &BitFlipOptions::elements, "Of how many elements")
      .at_least(1)
      .option("kind", &BitFlipOptions::kind, "How")
      .one_of({"passing", "lasting", "stuck", "update"});
}
