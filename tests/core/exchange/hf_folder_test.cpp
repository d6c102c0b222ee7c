// Hugging Face folders: which files are read, the required content of config.json, naming
// conventions, and the files written along with the weights.
#include "core/exchange/hf_folder.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <titan/model.h>

#include "core/exchange/hf_config.h"
#include "core/exchange/meta_shards.h"
#include "core/exchange/weight_names.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan::core {
namespace {

using testing::create;
using testing::error_of;
using testing::holds;
using testing::same_bytes;
using testing::TestFolder;
using testing::write_stored;
namespace fs = std::filesystem;

std::unique_ptr<Model> tiny_model(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 16},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"vocab_size", 32},
                              {"multiple_of", 8}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("llama3", options, {.seq_len = 64});
}

const HfExchange& exchange_of(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

Value without(const Value& config, std::initializer_list<const char*> names) {
  Value::Map kept;
  for (const auto& [name, value] : config.as_map())
    if (std::find(names.begin(), names.end(), name) == names.end()) kept.emplace_back(name, value);
  return kept;
}

TEST(HfFolder, ReadsTheFilesOfItsIndex) {
  const TestFolder folder;
  EXPECT_TRUE(
      holds(error_of([&] { hf_files(folder.at("nowhere")); }).what(), "there is no folder"));
  EXPECT_TRUE(holds(error_of([&] { hf_files(folder.path()); }).what(),
                    "there are no safetensors files in"));
  write_stored(folder, "x.safetensors", {{"a", at::ones(2)}});
  EXPECT_EQ(hf_files(folder.path()).size(), 1u);
  write_stored(folder, "model.safetensors", {{"a", at::ones(2)}});
  EXPECT_EQ(hf_files(folder.path()), std::vector<fs::path>{folder.at("model.safetensors")});
  write_stored(folder, "model-2.safetensors", {{"b", at::ones(2)}});
  folder.write(kHfIndexName,
               R"({"weight_map": {"a": "x.safetensors", "b": "model-2.safetensors"}})");
  EXPECT_EQ(hf_files(folder.path()),
            (std::vector<fs::path>{folder.at("model-2.safetensors"), folder.at("x.safetensors")}));
}

TEST(HfFolder, NamesWhatItsIndexPromisesAndIsNotThere) {
  const TestFolder folder;
  write_stored(folder, "x.safetensors", {{"a", at::ones(2)}});
  const auto message = [&](const char* index) {
    folder.write(kHfIndexName, index);
    return std::string(error_of([&] { hf_files(folder.path()); }).what());
  };
  const std::string both = message(
      R"({"weight_map": {"a": "x.safetensors", "b": "x.safetensors", "c": "y.safetensors"}})");
  EXPECT_TRUE(holds(both, "x.safetensors does not hold b"));
  EXPECT_TRUE(holds(both, "y.safetensors is missing, with 1 tensors"));
  EXPECT_TRUE(holds(message(R"({"weight_map": {"a": "../x.safetensors"}})"), "is not a file name"));
  EXPECT_TRUE(holds(message(R"({"weight_map": {}})"), "has no weight_map"));
  EXPECT_TRUE(holds(message("{"), kHfIndexName));
}

TEST(HfFolder, SaysWhatToDoAboutPickles) {
  for (const auto& [file, advice] :
       {std::pair{"consolidated.00.pth", "safetensors.torch.save_file"},
        std::pair{"pytorch_model.bin", "save_pretrained"},
        std::pair{"__0_0.distcp", "HuggingFaceStorageWriter"}}) {
    const TestFolder folder;
    folder.write(file, "pickle");
    const Error error = error_of([&] { hf_files(folder.path()); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_TRUE(holds(error.what(), file));
    EXPECT_TRUE(holds(error.what(), advice));
  }
}

TEST(HfFolder, TakesEqualConfigurationsInBothStyles) {
  const TestFolder folder;
  EXPECT_FALSE(check_hf_config(exchange_of(*tiny_model()), folder.path()));
  for (const double factor : {1.0, 8.0}) {
    const auto model = tiny_model({{"rope_scaling", Value::map({{"scaling_factor", factor}})}});
    const Value ours = exchange_of(*model).hf_config();
    Value theirs = ours;
    theirs["torch_dtype"] = "bfloat16";
    theirs["max_position_embeddings"] = 5;
    theirs["use_cache"] = false;
    folder.write("config.json", to_json(theirs));
    EXPECT_TRUE(check_hf_config(exchange_of(*model), folder.path()));

    Value newer = without(theirs, {"rope_theta", "rope_scaling"});
    Value rope = ours.at("rope_scaling").is_map() ? ours.at("rope_scaling")
                                                  : Value::map({{"rope_type", "default"}});
    rope["rope_theta"] = ours.at("rope_theta");
    newer["rope_parameters"] = rope;
    folder.write("config.json", to_json(newer));
    EXPECT_TRUE(check_hf_config(exchange_of(*model), folder.path()));
  }
}

TEST(HfFolder, TakesWhatAnOldConfigurationLeavesOut) {
  const TestFolder folder;
  const auto model = create<Model>(
      "llama2",
      Value::map(
          {{"dim", 16}, {"n_layers", 1}, {"n_heads", 4}, {"vocab_size", 32}, {"norm_eps", 1e-6}}),
      {.seq_len = 64});
  const Value ours = exchange_of(*model).hf_config();
  folder.write("config.json",
               to_json(without(
                   ours, {"num_key_value_heads", "head_dim", "rope_theta", "rope_scaling",
                          "attention_bias", "mlp_bias", "tie_word_embeddings", "rms_norm_eps"})));
  EXPECT_TRUE(check_hf_config(exchange_of(*model), folder.path()));
}

TEST(HfFolder, SaysWhatNoOptionOfTheModelChanges) {
  const TestFolder folder;
  const auto model = tiny_model();
  const auto make = [](const Value& options) {
    return create<Model>("llama3", options, {.seq_len = 64});
  };
  Value theirs = exchange_of(*model).hf_config();
  theirs["hidden_size"] = 32;
  folder.write("config.json", to_json(theirs));
  const auto check = [&] { check_hf_config(exchange_of(*model), folder.path(), make); };
  EXPECT_TRUE(holds(error_of(check).what(), "choose the model.flavor"));
  theirs["hidden_act"] = "gelu";
  folder.write("config.json", to_json(theirs));
  const Error error = error_of(check);
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(
      holds(error.what(),
            "config.json describes a network that this model does not support:\n  hidden_act "
            "is \"gelu\" there and \"silu\" here\n  no flavor and no option"))
      << error.what();
}

TEST(HfFolder, ListsEveryDifferenceThatChangesResults) {
  const TestFolder folder;
  const auto model = tiny_model({{"rope_scaling", Value::map({{"scaling_factor", 8.0}})}});
  const Value ours = exchange_of(*model).hf_config();
  Value theirs = ours;
  theirs["hidden_size"] = 32;
  theirs["num_key_value_heads"] = 4;
  theirs["rms_norm_eps"] = 1e-6;
  theirs["rope_theta"] = 1e6;
  theirs["tie_word_embeddings"] = true;
  theirs["hidden_act"] = "gelu";
  theirs["attention_bias"] = true;
  theirs["quantization_config"] = Value::map({{"bits", 4}});
  theirs["rope_scaling"]["factor"] = 32.0;
  folder.write("config.json", to_json(theirs));
  const Error error = error_of([&] { check_hf_config(exchange_of(*model), folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  for (const char* line :
       {"hidden_size is 32 there and 16 here", "num_key_value_heads is 4 there and 2 here",
        "rms_norm_eps is 1e-06 there and 1e-05 here", "rope_theta is 1e+06 there and 5e+05 here",
        "tie_word_embeddings is true there and false here",
        "hidden_act is \"gelu\" there and \"silu\" here", "attention_bias is true",
        "quantization_config is set there and not set here",
        "\n  factor is 32.0 there and 8.0 here", "choose the model.flavor"})
    EXPECT_TRUE(holds(error.what(), line));

  folder.write("config.json", to_json(without(ours, {"rope_scaling"})));
  EXPECT_TRUE(holds(error_of([&] { check_hf_config(exchange_of(*model), folder.path()); }).what(),
                    "rope_type is \"default\" there and \"llama3\" here"));
}

/// Tensors of a model under their preferred names.
std::vector<testing::Stored> weights_of(const Model& model, Naming naming) {
  ModelPart part(model.build());
  std::map<std::string, std::string> theirs;
  for (const auto& rule : dynamic_cast<const HfExchange&>(model).name_rules(naming))
    theirs.emplace(rule.ours, rule.theirs);
  std::vector<testing::Stored> weights;
  for (const nn::Parameter* parameter : part.parameters())
    weights.push_back({theirs.at(parameter->name()), at::randn(parameter->global_shape())});
  return weights;
}

TEST(WeightNames, FindsTheFirstNameThatIsThere) {
  const TestFolder folder;
  const auto model = tiny_model();
  const ModelPart part(model->build());
  auto weights = weights_of(*model, Naming::torchtitan);
  for (auto& weight : weights) {
    if (weight.name == "output.weight") weight.name = "lm_head.weight";
    if (weight.name == "layers.1.attention.wk.weight")
      weight.name = "layers.1.attention.qkv_linear.wk.weight";
  }
  weights.push_back({"state.output.weight.exp_avg", at::ones(3)});
  weights.push_back({"freqs_cis", at::ones(3)});
  const TensorIndex index = index_files({write_stored(folder, "a.safetensors", weights)});
  const auto found = find_weights(part, names_of(*model, "llama3", Naming::torchtitan), index,
                                  folder.path().string(), "llama3");
  ASSERT_EQ(found.size(), part.parameters().size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ours, part.parameters()[i]->name());
  for (const FoundWeight& weight : found) {
    ASSERT_EQ(weight.parts.size(), 1u);
    const TensorPart& whole = weight.parts.front();
    EXPECT_EQ(whole.source == "lm_head.weight", weight.ours == "output.weight");
    if (weight.ours == "layers.1.attention.wk.weight") {
      EXPECT_EQ(whole.source, "layers.1.attention.qkv_linear.wk.weight");
      EXPECT_EQ(whole.num_heads, 2);
    }
  }
}

TEST(WeightNames, ListsAllThatIsWrongAtOnce) {
  const TestFolder folder;
  const auto model = tiny_model();
  const ModelPart part(model->build());
  auto weights = weights_of(*model, Naming::hugging_face);
  weights.erase(weights.begin());  // the embedding
  for (auto& weight : weights)
    if (weight.name == "model.layers.0.self_attn.k_proj.weight") weight.tensor = at::ones({16, 16});
  weights.push_back({"model.layers.2.self_attn.k_proj.weight", at::ones(3)});
  weights.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", at::ones(2)});
  const TensorIndex index = index_files({write_stored(folder, "a.safetensors", weights)});
  const Error error = error_of([&] {
    find_weights(part, names_of(*model, "llama3", Naming::hugging_face), index, "FOLDER",
                 "llama3 8B");
  });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.message(),
            "the weights in FOLDER are not those of llama3 8B\n"
            "  missing:\n"
            "    model.embed_tokens.weight (tok_embeddings.weight)\n"
            "  of another shape:\n"
            "    model.layers.0.self_attn.k_proj.weight is (16, 16), the model's is (8, 16)\n"
            "  not a weight of this model:\n"
            "    model.layers.2.self_attn.k_proj.weight\n"
            "  choose the model with model.name, model.flavor and its options");
}

TEST(MetaShards, JoinAlongTheDimensionThatIsCut) {
  const TestFolder folder;
  const at::Tensor rows = at::randn({8, 6}), columns = at::randn({6, 8}), copy = at::randn({5});
  const auto write = [&](int i, const at::Tensor& norm) {
    return fs::path(write_stored(folder, "consolidated.0" + std::to_string(i) + ".safetensors",
                                 {{"rows", rows.narrow(0, 4 * i, 4)},
                                  {"columns", columns.narrow(1, 4 * i, 4)},
                                  {"norm", norm},
                                  {"rope.freqs", at::ones(4)}}));
  };
  std::vector<fs::path> files = {write(0, copy), write(1, copy)};
  const std::map<std::string, std::vector<int64_t>> shapes = {
      {"rows", {8, 6}}, {"columns", {6, 8}}, {"norm", {5}}};
  const TensorIndex index = index_meta_shards(files, shapes);
  for (const auto& [name, whole] :
       {std::pair{"rows", &rows}, {"columns", &columns}, {"norm", &copy}}) {
    EXPECT_EQ(index.tensors.find(name)->second.shape, whole->sizes().vec());
    std::string bytes;
    TensorStream(index).read(name, {.dtype = "F32"},
                             [&](const char* data, int64_t size) { bytes.append(data, size); });
    EXPECT_EQ(bytes, testing::bytes_of(*whole)) << name;
  }

  EXPECT_TRUE(holds(error_of([&] {
                      index_meta_shards(files, {{"rows", {12, 6}}});
                    }).what(),
                    "rows: (4, 6) + (4, 6) do not make (12, 6)"));
  files[1] = write(1, copy + 1);
  EXPECT_TRUE(holds(error_of([&] { index_meta_shards(files, shapes); }).what(),
                    "norm: the copy in consolidated.01.safetensors differs"));
}

TEST(HfFolder, TakesTokenIdsFromTheAssetsThenFromTheTokenizer) {
  const TestFolder folder;
  const SpecialTokens tokenizer = {.bos = 1, .eos = 2, .pad = std::nullopt};
  EXPECT_EQ(hf_token_ids(folder.path(), {}).bos, Value());
  EXPECT_EQ(hf_token_ids(folder.path(), tokenizer).eos, Value(2));
  folder.write("config.json", R"({"bos_token_id": 10, "eos_token_id": 11, "pad_token_id": null})");
  folder.write("generation_config.json", R"({"eos_token_id": [11, 12], "pad_token_id": 13})");
  const HfTokenIds ids = hf_token_ids(folder.path(), tokenizer);
  EXPECT_EQ(ids.bos, Value(10));
  EXPECT_EQ(ids.eos, Value::list({11, 12}));
  EXPECT_EQ(ids.pad, Value(13));
}

TEST(HfFolder, WritesWhatStandsBesideTheWeights) {
  const TestFolder assets, folder;
  assets.write("tokenizer.json", "{}");
  assets.write("README.md", "not copied");
  const auto model = tiny_model();
  const HfDescription description = {.config = exchange_of(*model).hf_config(),
                                     .dtype = "BF16",
                                     .tokens = {.bos = 1, .eos = Value::list({2, 3}), .pad = {}},
                                     .assets = assets.path()};
  EXPECT_EQ(hf_description_files(description),
            (std::vector<std::string>{"config.json", "generation_config.json", "tokenizer.json"}));
  write_hf_description(folder.path(), description);
  const Value config = parse_json(folder.read("config.json"));
  EXPECT_EQ(config.at("torch_dtype"), Value("bfloat16"));
  EXPECT_EQ(config.at("hidden_size"), Value(16));
  EXPECT_EQ(config.at("eos_token_id"), Value::list({2, 3}));
  EXPECT_EQ(config.find("pad_token_id"), nullptr);
  EXPECT_EQ(parse_json(folder.read("generation_config.json")),
            Value::map({{"bos_token_id", 1}, {"eos_token_id", Value::list({2, 3})}}));
  EXPECT_EQ(folder.read("tokenizer.json"), "{}");

  assets.write("generation_config.json", R"({"temperature": 0.6})");
  write_hf_description(folder.path(), description);
  EXPECT_EQ(folder.read("generation_config.json"), R"({"temperature": 0.6})");
}

}  // namespace
}  // namespace titan::core
