// What a parallelism wants of the grid of ranks, declared next to its options. No torch.
//
//   plugin.add<ShardedEmbedding>("acme/embedding", "...")
//       .option("degree", &Options::degree, "Ranks that share the rows")
//       .axes([](const Options& o, AxisPlan& plan) {
//         plan.borrow("emb", o.degree, {"dp_shard", "dp_replicate"});
//       });
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dist/grid.h>
#include <titan/export.h>

namespace titan {

/// The rows that one parallelism adds to dist::Grid, where each call is explained. The groups exist
/// before ModelTransform::apply, in simulated ranks as well: `context.mesh.group("emb")`. What it
/// gets wrong is reported at `option`, the plugin's option that holds the degree.
class TITAN_API AxisPlan {
 public:
  void add(std::string name, int64_t degree, std::string option = "degree");
  void borrow(std::string name, int64_t degree, std::vector<std::string> axes,
              std::string option = "degree");
  void derive(std::string name, std::vector<std::string> axes,
              std::vector<std::string> without = {});

  /// Ranks that the added axes multiply the world by.
  int64_t num_added_ranks() const;
  /// Throws as Grid's calls; the message names the option.
  void apply(dist::Grid& grid) const;

 private:
  enum class Kind { add, borrow, derive };
  struct Row {
    Kind kind;
    std::string name;
    int64_t degree = 1;
    std::vector<std::string> axes = {}, without = {};
    std::string option = {};
  };
  std::vector<Row> rows_;
};

}  // namespace titan
