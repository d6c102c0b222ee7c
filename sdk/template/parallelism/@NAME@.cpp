// Parallelism @FULL_NAME@. As generated it counts how many elements of every layer's output the ranks of one mesh axis
// hold together, and leaves the model as it is.
// Select it with [parallelism] further = ["@FULL_NAME@"], or let it serve an axis: data_parallel = "@FULL_NAME@".
// Its options stand in [parallelism."@FULL_NAME@"].
#include <string>

#include <titan/dist/collectives.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct @CLASS@Options {
  std::string axis = "world";  // pp, dp_replicate, dp_shard, cp, tp, dp, fsdp, loss or world
};

class @CLASS@ final : public titan::Parallelism {
 public:
  @CLASS@(const @CLASS@Options& options, const titan::TransformContext&) : options_(options) {}

  /// partition: narrow weights (Parameter::shard_over); data: shard or replicate what the layers hold.
  titan::Phase phase() const override { return titan::Phase::data; }

  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    const titan::dist::Group group = context.mesh.group(options_.axis);
    for (titan::Layer& layer : part.layers())
      layer.module->wrap([group, name = layer.name, is_first = true](
                             const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) mutable {
        const at::Tensor y = next(x, batch);  // through the layer, and what was wrapped around it before
        if (is_first) {
          const int64_t total = group.all_reduce(int64_t{y.numel()}, titan::dist::Reduce::sum, y.device());
          if (group.rank() == 0)
            titan::log::info(name + ": " + std::to_string(total) + " elements over " + std::to_string(group.size()) +
                             " ranks of " + group.name());
        }
        is_first = false;
        return y;
      });
  }

 private:
  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Counts what each layer's activations hold over the ranks of an axis.")
      .option("axis", &@CLASS@Options::axis, "Axis of the mesh whose ranks are counted")
      .one_of({"pp", "dp_replicate", "dp_shard", "cp", "tp", "dp", "fsdp", "loss", "world"});
}
