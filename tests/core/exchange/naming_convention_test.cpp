// core/exchange/naming_convention.h and weight_copies.h: the naming convention of files of weights,
// and weights that are stored under two names.
#include "core/exchange/naming_convention.h"

#include <gtest/gtest.h>

#include <ATen/ops/randn.h>
#include <titan/model.h>

#include "core/exchange/weight_copies.h"
#include "core/exchange/weight_file.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;
using testing::write_stored;

/// A file written by Titan.
std::filesystem::path own_file(const TestFolder& folder) {
  const TensorIndex source =
      index_files({write_stored(folder, "source.safetensors", {{"w", at::randn({4, 2})}})});
  const auto files =
      plan_weight_files({{.entry = {.name = "w", .dtype = "F32", .shape = {4, 2}}, .source = "w"}},
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
  EXPECT_TRUE(holds(error.message(),
                    "FOLDER holds Titan's own weights, as the header of "
                    "weights-rank-00000.safetensors says"));
}

TEST(Convention, IsAskedForWhereNothingTellsIt) {
  const TestFolder folder;
  const std::filesystem::path own = own_file(folder);
  const std::string foreign = write_stored(folder, "foreign.safetensors", {{"v", at::randn(3)}});
  const TensorIndex index = index_files({own, foreign});
  const Error error = error_of([&] { require_own_convention(index, "'FOLDER'", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(),
                    "'FOLDER' does not state the naming convention of its weights: "
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
  const TestFolder folder;  // write_stored adds hashes to sharded tensors
  const TensorIndex index =
      index_files({write_stored(folder, "a.safetensors", {{"w", at::randn({4}), {0}}})});
  EXPECT_EQ(index.says_own, std::vector<bool>{true});
}

std::unique_ptr<Model> tied_model(bool is_tied = true) {
  return testing::create<Model>("llama3",
                                Value::map({{"dim", 16},
                                            {"n_layers", 1},
                                            {"n_heads", 4},
                                            {"vocab_size", 32},
                                            {"multiple_of", 8},
                                            {"enable_weight_tying", is_tied}}),
                                {.seq_len = 64});
}

/// Every weight under its preferred name.
std::vector<testing::Stored> named_weights(const Model& model, Naming naming) {
  const ModelPart part(model.build());
  std::map<std::string, std::string> theirs;
  for (const auto& rule : dynamic_cast<const HfExchange&>(model).name_rules(naming))
    theirs.emplace(rule.ours, rule.theirs);
  std::vector<testing::Stored> weights;
  for (const ParameterInfo& parameter : part.all_parameters())
    weights.push_back({theirs.at(parameter.name), at::randn(parameter.shape)});
  return weights;
}

/// The error when such weights are loaded; empty when there is none.
std::string refusal(const Model& model, Naming naming,
                    const std::vector<testing::Stored>& weights) {
  const TestFolder folder;
  const TensorIndex index = index_files({write_stored(folder, "a.safetensors", weights)});
  try {
    const ModelPart part(model.build());
    const auto found =
        find_weights(part, names_of(model, "llama3", naming), index, "FOLDER", "llama3");
    EXPECT_EQ(found.size(), part.all_parameters().size());
    check_copies(found, index, "FOLDER", "llama3");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    return e.message();
  }
}

TEST(TiedWeights, MayBeWrittenOutWhereTheyAreEqual) {
  const auto model = tied_model();
  for (const auto& [naming, head] : {std::pair{Naming::hugging_face, "lm_head.weight"},
                                     {Naming::meta, "output.weight"},
                                     {Naming::torchtitan, "output.weight"},
                                     {Naming::torchtitan, "lm_head.weight"}}) {
    auto weights = named_weights(*model, naming);
    EXPECT_EQ(refusal(*model, naming, weights), "") << "the head may be missing";
    const std::string embedding = weights.front().name;
    weights.push_back({head, weights.front().tensor.clone()});
    EXPECT_EQ(refusal(*model, naming, weights), "") << head;
    weights.back().tensor = weights.front().tensor.to(at::kDouble);
    EXPECT_EQ(refusal(*model, naming, weights), "") << "the same values in another type";
    weights.back().tensor[31][15] += 1;
    EXPECT_EQ(refusal(*model, naming, weights),
              "FOLDER holds " + std::string(head) + " with other values than " + embedding +
                  ", but in llama3 the two are one weight (tok_embeddings.weight): one of them "
                  "would be lost; choose a model that has both, or remove one of them");
    weights.back().tensor = at::randn({32, 8});
    EXPECT_TRUE(holds(refusal(*model, naming, weights),
                      std::string(head) + " is (32, 8), the model's is (32, 16)"));
    weights.back().tensor = weights.front().tensor;
    weights.erase(weights.begin());
    EXPECT_EQ(refusal(*model, naming, weights), "") << "one of the two names is enough";
  }
}

TEST(TiedWeights, OfAModelThatDoesNotTieAreTwo) {
  const auto model = tied_model(false);
  EXPECT_EQ(refusal(*model, Naming::hugging_face, named_weights(*model, Naming::hugging_face)), "");
}

}  // namespace
}  // namespace titan::core
