// AxisPlan: how a parallelism adds mesh axes and groups of ranks. Declared next to its options. No
// torch.
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

/// The axes and groups that one parallelism adds to dist::Grid, which explains each call. The
/// groups exist before ModelTransform::apply runs, on simulated ranks too:
/// `context.mesh.group("emb")`. Errors are reported at `option`, the plugin's option that holds the
/// degree.
class TITAN_API AxisPlan {
 public:
  void add(std::string name, int64_t degree, std::string option = "degree");
  void borrow(std::string name, int64_t degree, std::vector<std::string> axes,
              std::string option = "degree");
  void derive(std::string name, std::vector<std::string> axes,
              std::vector<std::string> without = {});

  /// Factor by which the added axes multiply the number of ranks.
  int64_t num_added_ranks() const;
  /// Throws the errors of Grid's calls; the message names the option.
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
