// A parallelism that cuts only the rows of the token embedding, over its own mesh axis: `degree` of
// the data-parallel ranks share one table. The ranks exchange ids and vectors; the table itself is
// never sent.
#include <map>

#include <ATen/ops/empty.h>
#include <titan/dist/collectives.h>
#include <titan/nn/embedding.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace sharded_embedding {
namespace {

using namespace titan;

struct Options {
  int64_t degree = 2;
};

/// The ids of all ranks' rows, (size x rows, seq_len).
at::Tensor gather_ids(const at::Tensor& ids, const dist::Group& group) {
  at::Tensor all = at::empty({group.size() * ids.size(0), ids.size(1)}, ids.options());
  group.all_gather(all, ids.contiguous()).wait();
  return all;
}

class ShardedEmbedding final : public Parallelism {
 public:
  ShardedEmbedding(const Options&, TransformContext) {}

  Phase phase() const override { return Phase::partition; }

  void apply(ModelPart& part, const TransformContext& context) override {
    const dist::Group& group = context.mesh.group("emb");
    if (group.size() == 1) return;
    std::map<nn::Parameter*, int> num_layers;
    for (Layer& layer : part.layers())
      layer.module->visit_parameters([&](nn::Parameter& p) { ++num_layers[&p]; });
    for (Layer& layer : part.layers())
      layer.module->visit_modules([&](const std::string&, nn::Module& module) {
        auto* embedding = dynamic_cast<nn::Embedding*>(&module);
        if (embedding) cut(*embedding, num_layers.at(&embedding->weight()) > 1, group);
      });
  }

 private:
  static void cut(nn::Embedding& embedding, bool is_tied, const dist::Group& group) {
    nn::Parameter& table = embedding.weight();
    TITAN_CHECK(table.shardings().empty(), config, "'", table.name(), "' is cut over '",
                table.shardings()[0].group, "' already; leave out maintainers/sharded_embedding");
    TITAN_CHECK(!is_tied, config, "'", table.name(), "' is the head's weight too, which needs all ",
                "of its rows; leave out maintainers/sharded_embedding");
    table.shard_over(0, group);
    const int64_t first = table.slice().offsets[0], count = table.slice().sizes[0];
    embedding.wrap([=](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      Batch all = batch;
      const at::Tensor ids = gather_ids(batch.tokens, group) - first;
      const at::Tensor is_here = ids.ge(0).bitwise_and(ids.lt(count));
      all.tokens = ids.mul(is_here);  // row 0 in place of other ranks' rows
      const at::Tensor vectors = next(x, all);
      return dist::reduce_scatter(vectors.mul(is_here.unsqueeze(-1)), 0, group);
    });
  }
};

}  // namespace
}  // namespace sharded_embedding

TITAN_PLUGIN(plugin) {
  using sharded_embedding::Options;
  plugin
      .add<sharded_embedding::ShardedEmbedding>(
          "maintainers/sharded_embedding", "Spreads the token embedding over data-parallel ranks.")
      .option("degree", &Options::degree, "Ranks that share the rows")
      .at_least(1)
      .axes([](const Options& options, titan::AxisPlan& plan) {
        plan.borrow("emb", options.degree, {"dp_shard", "dp_replicate"});
      });
}
