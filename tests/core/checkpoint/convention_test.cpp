// core/checkpoint/convention.h: whose weights files hold.
#include "core/checkpoint/convention.h"

#include <gtest/gtest.h>

#include <ATen/ops/randn.h>

#include "core/checkpoint/weight_file.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;
using testing::write_stored;

/// A file of Titan's own making.
std::filesystem::path own_file(const TestFolder& folder) {
  const TensorIndex source =
      index_files({write_stored(folder, "source.safetensors", {{"w", at::randn({4, 2})}})});
  const auto files = plan_weight_files(
      {{.entry = {.name = "w", .dtype = "F32", .shape = {4, 2}}, .source = "w"}},
      FileStyle::checkpoint, 1 << 20);
  write_weight_file(source, files.front(), folder.path());
  return folder.path() / files.front().name;
}

TEST(Convention, StandsInTheHeadersOfOurFiles) {
  const TestFolder folder;
  const std::filesystem::path own = own_file(folder);
  EXPECT_EQ(read_header(own).metadata.at("TITAN_CONVENTION"), "titan");
  const TensorIndex index = index_files({own});
  EXPECT_EQ(index.says_own, std::vector<bool>{true});
  require_own_convention(index, "'FOLDER'", {});
  const Error error =
      error_of([&] { refuse_own_convention(index, "FOLDER", "from-torchtitan-names"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(), "FOLDER holds Titan's own weights, as the header of "
                                     "weights-rank-00000.safetensors says"));
}

TEST(Convention, IsAskedForWhereNothingTellsIt) {
  const TestFolder folder;
  const std::filesystem::path own = own_file(folder);
  const std::string foreign = write_stored(folder, "foreign.safetensors", {{"v", at::randn(3)}});
  const TensorIndex index = index_files({own, foreign});
  const Error error = error_of([&] { require_own_convention(index, "'FOLDER'", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(), "'FOLDER' does not say whose weights it holds: "
                                     "foreign.safetensors has no TITAN_CONVENTION = \"titan\""));
  EXPECT_TRUE(holds(error.message(), "titan convert from-torchtitan-names"));
  EXPECT_TRUE(holds(error.message(), "checkpoint.take_on_trust = [\"row_order\"]"));
  CheckpointSection trusting;
  trusting.take_on_trust = {"model_options"};
  EXPECT_EQ(error_of([&] { require_own_convention(index, "", trusting); }).kind(),
            ErrorKind::config);
  trusting.take_on_trust = {"row_order"};
  require_own_convention(index, "'FOLDER'", trusting);
  refuse_own_convention(index_files({foreign}), "FOLDER", "from-meta-names");
}

TEST(Convention, OfFilesFromBeforeTheKeyIsKnownByTheirHashes) {
  const TestFolder folder;  // write_stored adds hashes where a tensor is cut
  const TensorIndex index =
      index_files({write_stored(folder, "a.safetensors", {{"w", at::randn({4}), {0}}})});
  EXPECT_EQ(index.says_own, std::vector<bool>{true});
}

}  // namespace
}  // namespace titan::core
