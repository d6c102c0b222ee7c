// Parallelisms with one defect each, for the conformance kit. Each is written from the one sentence
// of its test.
#include <memory>
#include <string>
#include <utility>

#include <titan/log.h>
#include <titan/nn/module.h>

#include "transforms.h"

namespace {

using wrong::When;

/// Prints a line and changes nothing; wrong if `when`.
template <When when>
class Prints : public titan::Parallelism {
 public:
  explicit Prints(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::partition; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    titan::log::info("a parallelism of one kind of rank");
    const auto trigger = std::make_shared<wrong::Trigger>(when, part, context);
    wrong::scale_feed_forwards(part, trigger, when, 1.01);
  }
};

using Right = Prints<When::never>;

class Empty final : public titan::Parallelism {
 public:
  explicit Empty(const titan::TransformContext&) {}
  titan::Phase phase() const override { return {}; }
  void apply(titan::ModelPart&, const titan::TransformContext&) override {}
};

/// Draws slightly other initial weights.
class SameStart final : public Right {
 public:
  using Right::Right;
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    Right::apply(part, context);
    for (titan::nn::Parameter* parameter : part.parameters())
      const_cast<titan::nn::Init&>(parameter->init()).std *=
          1 + 1e-6;  // weights are drawn in float32
  }
};

/// Computes microbatches of four rows or more in another way.
class Accumulation final : public Right {
 public:
  using Right::Right;
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    Right::apply(part, context);
    for (titan::Layer& layer : part.layers())
      if (layer.is_block)
        layer.module->wrap(
            [](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
              return x.size(0) >= 4 ? next(x * 1.5, batch) : next(x, batch);
            });
  }
};

/// A state that one rank without the plugin does not have.
class Extra final : public titan::nn::Module {
 public:
  Extra() { add_state("extra", {1}, titan::nn::Init::constant(0)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const titan::Batch&) override { return x; }
};

/// Its checkpoints hold a tensor that no other run knows.
class ToOneRank final : public Right {
 public:
  using Right::Right;
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    Right::apply(part, context);
    for (titan::Layer& layer : part.layers())
      if (layer.is_block) layer.module->attach("extra", std::make_unique<Extra>());
    part.refresh();
  }
  titan::Phase phase() const override { return titan::Phase::convert; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Right>("wrong/right", "Correct.");
  plugin.add<Empty>("wrong/acts", "Changes nothing.");
  plugin.add<Prints<When::always>>("wrong/alone", "Scales inputs.");
  plugin.add<SameStart>("wrong/same_start", "Draws other weights.");
  plugin.add<Prints<When::fsdp>>("wrong/with_fsdp", "Scales inputs under FSDP.");
  plugin.add<Prints<When::tensor>>("wrong/with_tensor", "Scales inputs under tensor parallelism.");
  plugin.add<Prints<When::pipeline>>("wrong/with_pipeline", "Scales inputs in a pipeline.");
  plugin.add<Prints<When::context>>("wrong/with_context",
                                    "Scales inputs under context parallelism.");
  plugin.add<Accumulation>("wrong/accumulation", "Scales inputs of large microbatches.");
  plugin.add<Prints<When::recomputed>>("wrong/recomputed", "Scales recomputed inputs.");
  plugin.add<Prints<When::resumed>>("wrong/resume", "Scales inputs after a resume.");
  plugin.add<ToOneRank>("wrong/to_one_rank", "Saves a further tensor.");
  wrong::add_interfaces<Right>(plugin);
}
