#include "replicas.h"

#include <utility>

#include "gradient_sum.h"

namespace titan::replicas {

Replicas::Replicas(const ReplicaOptions& options, const TransformContext& context)
    : options_(options), link_(options, context.device) {}

void Replicas::apply(ModelPart& part, const TransformContext&) {
  part_ = &part;
}

void Replicas::finish_gradients() {
  if (is_joined_) sum_gradients(part_->parameters(), link_.group(), options_.bucket_size.count);
}

void Replicas::join(ReplicaRun& run, dist::Mesh& mesh) {
  link_.join(run, mesh);
  mesh.set_replicas(link_.group());
  is_joined_ = true;
}

Judgement Replicas::agree(const Step& step, Judgement judgement) {
  return link_.agree(step, std::move(judgement));
}

}  // namespace titan::replicas
