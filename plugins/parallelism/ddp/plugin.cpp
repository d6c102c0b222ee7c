// Data parallelism with whole parameters on every rank. Gradients are summed in buckets by
// all-reduces that overlap with the rest of the backward. Li et al., 2020.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <titan/local_gradients.h>
#include <titan/nn/cuts.h>
#include <titan/plugin.h>
#include <titan/transform.h>

#include "bucket.h"

namespace titan::ddp {
namespace {

struct DdpOptions {
  Bytes bucket_size{100 * 1024 * 1024};  // of gradients that are summed by one all-reduce
};

/// The buckets of parameters whose gradients are summed over one group, in the order in which the
/// backward is expected to fill them. They are always started in this order, so that all ranks
/// agree.
class Buckets final : public GradientReducer {
 public:
  /// `parameters`: none of them frozen.
  Buckets(const std::vector<nn::Parameter*>& parameters, int64_t max_elements,
          const dist::Group& group, at::ScalarType reduce_dtype)
      : group_(group) {
    for (size_t i = parameters.size(); i-- > 0;) {
      nn::Parameter& parameter = *parameters[i];
      TITAN_CHECK(parameter.shard().is_same(parameter.value()), config,
                  "ddp cannot serve parameter '", parameter.name(),
                  "': another data-parallel transform has taken it; select one");
      const int64_t num_elements = parameter.shard().numel();
      if (buckets_.empty() || buckets_.back().num_elements() + num_elements > max_elements)
        buckets_.emplace_back(reduce_dtype);
      places_.push_back({buckets_.size() - 1, buckets_.back().num_parameters()});
      buckets_.back().add(parameter);
    }
  }

  /// `self` keeps the buckets alive as long as the parameters.
  static void attach(const std::shared_ptr<Buckets>& self,
                     const std::vector<nn::Parameter*>& parameters) {
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i]->on_gradient([self, place = self->places_[parameters.size() - 1 - i]](
                                     nn::Parameter&) { self->gradient_arrived(place); });
  }

  void begin_step() override {
    num_started_ = 0;
    for (Bucket& bucket : buckets_) bucket.abandon();
  }

  void start_microbatch(bool is_last) override { is_last_microbatch_ = is_last; }

  void finish_gradients() override {
    for (; num_started_ < buckets_.size(); ++num_started_) buckets_[num_started_].start(group_);
    for (Bucket& bucket : buckets_) bucket.finish();
    num_started_ = 0;
  }

 private:
  struct Place {
    size_t bucket;
    size_t index;
  };

  void gradient_arrived(Place place) {
    if (!is_last_microbatch_)
      return;  // later microbatches accumulate into the parameter's gradient
    buckets_[place.bucket].take(place.index);
    while (num_started_ < buckets_.size() && buckets_[num_started_].is_full())
      buckets_[num_started_++].start(group_);
  }

  dist::Group group_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter, in reverse order
  size_t num_started_ = 0;
  bool is_last_microbatch_ = true;
};

/// The replicas that hold the same slice: excludes groups over which other transforms have cut it.
const dist::Group& replicas_of(const nn::Parameter& parameter, const dist::Mesh& mesh) {
  return mesh.complement("dp_replicate", nn::cut_groups(parameter));
}

class Ddp final : public Parallelism, public GradientReducer {
 public:
  Ddp(const DdpOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::data; }

  void apply(ModelPart& part, const TransformContext& context) override {
    TITAN_CHECK(context.mesh.group("fsdp").size() == 1, config,
                "ddp sums gradients over replicas only, but there are ",
                context.mesh.group("fsdp").size(),
                " ranks of sharding and context parallelism; set parallelism.data_parallel = "
                "\"fsdp\"");
    std::map<std::string, std::vector<nn::Parameter*>> by_group;
    for (nn::Parameter* parameter : part.parameters())
      if (!parameter->is_frozen() && parameter->owner().empty())
        by_group[replicas_of(*parameter, context.mesh).name()].push_back(parameter);
    const auto element_size = static_cast<int64_t>(c10::elementSize(context.parameter_dtype));
    for (const auto& [name, parameters] : by_group) {
      const dist::Group& group = context.mesh.group(name);
      if (group.size() == 1) {
        reducers_.push_back(std::make_shared<LocalGradients>(parameters));
        continue;
      }
      const auto buckets = std::make_shared<Buckets>(
          parameters, options_.bucket_size.count / element_size, group, context.reduce_dtype);
      Buckets::attach(buckets, parameters);
      reducers_.push_back(buckets);
    }
  }

  void begin_step() override {
    for (const auto& reducer : reducers_) reducer->begin_step();
  }
  void start_microbatch(bool is_last) override {
    for (const auto& reducer : reducers_) reducer->start_microbatch(is_last);
  }
  void finish_gradients() override {
    for (const auto& reducer : reducers_) reducer->finish_gradients();
  }

 private:
  DdpOptions options_;
  std::vector<std::shared_ptr<GradientReducer>> reducers_;  // one for each group
};

}  // namespace
}  // namespace titan::ddp

TITAN_PLUGIN(plugin) {
  using titan::ddp::DdpOptions;
  plugin
      .add<titan::ddp::Ddp>("ddp", "Keeps whole parameters on every rank and sums their gradients.")
      .option("bucket_size", &DdpOptions::bucket_size, "Gradients summed by one all-reduce")
      .greater_than(0);
}
