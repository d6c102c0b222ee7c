// Parallelism @FULL_NAME@. As generated, it logs the number of elements of each layer's output, summed over the ranks
// of a mesh axis. It does not change the model.
// Select it with [parallelism] further = ["@FULL_NAME@"], or for an axis: data_parallel = "@FULL_NAME@".
// [parallelism."@FULL_NAME@"] holds its options.
#include <string>

#include <titan/dist/collectives.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct @CLASS@Options {
  // An axis whose ranks run the same layers at the same time: not pp or world, where pipeline stages wait for each other.
  std::string axis = "loss";
};

class @CLASS@ final : public titan::Parallelism {
 public:
  @CLASS@(const @CLASS@Options& options, const titan::TransformContext&) : options_(options) {}

  /// Phase::partition: shard weights (Parameter::shard_over). Phase::data: shard or replicate parameters of layers.
  titan::Phase phase() const override { return titan::Phase::data; }

  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    const titan::dist::Group group = context.mesh.group(options_.axis);
    for (titan::Layer& layer : part.layers())
      layer.module->wrap([group, name = layer.name, is_first = true](
                             const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) mutable {
        const at::Tensor y = next(x, batch);  // runs the layer and all earlier wrappers
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
  plugin.add<@CLASS@>("@FULL_NAME@", "Logs the elements of each layer's output over the ranks of an axis.")
      .option("axis", &@CLASS@Options::axis, "Mesh axis to sum over")
      .one_of({"dp_replicate", "dp_shard", "cp", "tp", "dp", "fsdp", "loss"});
}
