// titan/checkpoints/tensor_index.h: which pieces make up a tensor, and every refusal.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/tensor_index.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/checkpoints/shards.h"

namespace titan {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;

using Numbers = std::vector<int64_t>;

/// The index of files that each hold several rectangles of F32.
TensorIndex index_of(const std::vector<std::vector<TestTensor>>& shards) {
  std::vector<std::filesystem::path> files;
  std::vector<SafetensorsHeader> headers;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string content = shard_file(shards[i]);
    files.push_back("shard-" + std::to_string(i));
    headers.push_back(parse_header(content, static_cast<int64_t>(content.size()), files.back()));
  }
  return index_headers(std::move(files), headers);
}

/// One file with these texts in __metadata__ and a single tensor "w", F32 [2, 3].
TensorIndex index_with(const std::map<std::string, std::string>& metadata) {
  std::vector<TensorEntry> tensors{{"w", "F32", {2, 3}}};
  lay_out(tensors);
  const std::string bytes = header_bytes(tensors, metadata);
  return index_headers({"a.safetensors"},
                       {parse_header(bytes, static_cast<int64_t>(bytes.size()) + 24, "a")});
}

void expect_refused(const std::vector<std::vector<TestTensor>>& shards, const std::string& part) {
  const Error error = error_of([&] { index_of(shards); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.message(), part));
}

TEST(TensorIndex, PutsPiecesOfSeveralFilesTogether) {
  const TensorIndex index = index_of(
      {{{"w", "F32", {3, 4}, {0, 0}}, {"b", "BF16", {5}, {0}}}, {{"w", "F32", {2, 4}, {3, 0}}}});
  EXPECT_EQ(index.files.size(), 2u);
  ASSERT_EQ(index.tensors.size(), 2u);
  const StoredTensor& w = index.tensors.at("w");
  EXPECT_EQ(w.dtype, "F32");
  EXPECT_EQ(w.shape, (Numbers{5, 4}));
  ASSERT_EQ(w.pieces.size(), 2u);
  EXPECT_EQ(w.pieces[1].file, 1);
  EXPECT_EQ(w.pieces[1].offsets, (Numbers{3, 0}));
  EXPECT_EQ(w.pieces[1].sizes, (Numbers{2, 4}));
  EXPECT_EQ(w.pieces[1].bytes, 32);
  EXPECT_EQ(w.pieces[1].hash, hash_hex(pattern(32)));
  const std::string content = shard_file({{"w", "F32", {2, 4}, {3, 0}}});
  EXPECT_EQ(w.pieces[1].position, static_cast<int64_t>(content.size()) - 32);
  EXPECT_EQ(index.tensors.at("b").shape, (Numbers{5}));
}

TEST(TensorIndex, TakesFilesWithoutShardingInfoAsWhole) {
  const TestFolder folder;
  folder.write("b.safetensors", shard_file({{"w", "F32", {2, 3}}}, false));
  folder.write("a.safetensors", shard_file({{"v", "I64", {}}}, false));
  folder.write("c.txt", "");
  const auto files = safetensors_files(folder.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], folder.at("a.safetensors"));
  const TensorIndex index = index_files(files);
  EXPECT_EQ(index.tensors.at("w").shape, (Numbers{2, 3}));
  EXPECT_EQ(index.tensors.at("v").shape, (Numbers{}));
  EXPECT_EQ(index.tensors.at("w").pieces.front().file, 1);
}

TEST(TensorIndex, TakesScalarsEmptyTensorsAndEmptyPieces) {
  const TensorIndex index = index_of({{{"s", "F32", {}, {}}, {"e", "F32", {0, 3}, {0, 0}}},
                                      {{"w", "F32", {2, 3}, {0, 0}}},
                                      {{"w", "F32", {0, 3}, {2, 0}}},
                                      {{"w", "F32", {0, 3}, {2, 0}}}});
  EXPECT_EQ(index.tensors.at("s").shape, (Numbers{}));
  EXPECT_EQ(index.tensors.at("e").shape, (Numbers{0, 3}));
  EXPECT_EQ(index.tensors.at("w").shape, (Numbers{2, 3}));
  EXPECT_EQ(index.tensors.at("w").pieces.size(), 3u);
}

TEST(TensorIndex, TakesGridsAndBlocksOfAnyKind) {
  std::vector<std::vector<TestTensor>> grid;
  for (int64_t row = 0; row < 20; ++row)
    for (int64_t column = 0; column < 20; ++column)
      grid.push_back({{"w", "F32", {3, 2}, {3 * row, 2 * column}}});
  EXPECT_EQ(index_of(grid).tensors.at("w").shape, (Numbers{60, 40}));
  grid[7] = grid[6];
  expect_refused(grid, "tensor 'w' is stored twice in part");

  // no straight line separates these five blocks
  const std::vector<std::vector<TestTensor>> wheel{{{"w", "F32", {1, 2}, {0, 0}}},
                                                   {{"w", "F32", {2, 1}, {0, 2}}},
                                                   {{"w", "F32", {1, 2}, {2, 1}}},
                                                   {{"w", "F32", {2, 1}, {1, 0}}},
                                                   {{"w", "F32", {1, 1}, {1, 1}}}};
  EXPECT_EQ(index_of(wheel).tensors.at("w").shape, (Numbers{3, 3}));
}

TEST(TensorIndex, RefusesOverlapsAndGaps) {
  expect_refused({{{"w", "F32", {3, 4}, {0, 0}}}, {{"w", "F32", {3, 4}, {2, 0}}}},
                 "tensor 'w' is stored twice in part: [3, 4] at [0, 0] in shard-0 overlaps "
                 "[3, 4] at [2, 0] in shard-1");
  expect_refused({{{"w", "F32", {3}, {0}}}, {{"w", "F32", {3}, {0}}}}, "is stored twice in part");
  expect_refused({{{"s", "F32", {}, {}}}, {{"s", "F32", {}, {}}}}, "is stored twice in part");
  // an overlap and a gap of the same size
  expect_refused({{{"w", "F32", {2}, {0}}}, {{"w", "F32", {2}, {1}}}, {{"w", "F32", {2}, {4}}}},
                 "is stored twice in part");
  expect_refused({{{"w", "F32", {3, 4}, {0, 0}}}, {{"w", "F32", {2, 4}, {4, 0}}}},
                 "tensor 'w' has gaps: its pieces hold 80 of 96 bytes of shape [6, 4]; a file is "
                 "missing next to shard-0, shard-1");
  expect_refused({{{"w", "F32", {2, 4}, {3, 0}}}}, "tensor 'w' has gaps");
  expect_refused({{{"w", "F32", {0, 4}, {3, 0}}}}, "tensor 'w' has gaps");
  expect_refused({{{"w", "F32", {1, 1}, {0, 0}}}, {{"w", "F32", {1, 1}, {1, 1}}}}, "has gaps");
}

TEST(TensorIndex, RefusesPiecesThatDoNotBelongTogether) {
  expect_refused({{{"w", "F32", {3}, {0}}}, {{"w", "BF16", {3}, {3}}}},
                 "tensor 'w' in shard-1 has type BF16, but F32 in shard-0");
  expect_refused({{{"w", "F32", {3}, {0}}}, {{"w", "F32", {3, 1}, {3, 0}}}},
                 "tensor 'w' in shard-1 has 2 dimensions, but 1 in shard-0");
  expect_refused({{{"w", "F32", {3}, {0, 0}}}},
                 "tensor 'w' in shard-0 has 2 saved_offsets [0, 0], but its shape is [3]");
  const int64_t most = std::numeric_limits<int64_t>::max();
  expect_refused({{{"w", "F32", {3}, {most}}}}, "which is beyond 64 bits with sign");
  expect_refused({{{"w", "F32", {1}, {most - 1}}}}, "the shape's product is beyond 64 bits");
  expect_refused({{{"w", "F32", {1, 1}, {most / 2, most / 2}}}},
                 "the shape's product is beyond 64 bits");
}

TEST(TensorIndex, RefusesTwoWholeFilesWithOneTensor) {
  const TestFolder folder;
  const std::string content = shard_file({{"w", "F32", {2}}}, false);
  const std::string a = folder.write("a.safetensors", content);
  const std::string b = folder.write("b.safetensors", content);
  const std::string message = error_of([&] { index_files({a, b}); }).message();
  EXPECT_TRUE(holds(message, "tensor 'w' is stored twice in part"));
  EXPECT_TRUE(holds(message, a));
  EXPECT_TRUE(holds(message, b));
}

TEST(TensorIndex, TakesPyTorchsShardingInfo) {
  EXPECT_EQ(index_with({{kShardingKey,
                         "{\"v\": {\"saved_offsets\": []},\n \"w\": {\"new\": [{\"a\": "
                         "[1, \"x\", null, true]}], \"saved_offsets\": [0, 0]}}"}})
                .tensors.at("w")
                .shape,
            (Numbers{2, 3}));
}

TEST(TensorIndex, RefusesShardingInfoThatIsMalformed) {
  const auto refused = [](const std::string& text, const std::string& part) {
    const Error error = error_of([&] { index_with({{kShardingKey, text}}); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    EXPECT_TRUE(holds(error.message(), "a.safetensors"));
    EXPECT_TRUE(holds(error.message(), "DCP_SHARDING_INFO"));
    EXPECT_TRUE(holds(error.message(), part)) << text;
  };
  refused("{}", "DCP_SHARDING_INFO does not name tensor 'w'");
  refused(R"({"v": {"saved_offsets": [0, 0]}})", "does not name tensor 'w'");
  refused("", "malformed JSON");
  refused("[]", "a list");
  refused("null", "null");
  refused("5", "the number 5");
  refused(R"({"w": [0, 0]})", "tensor 'w': a list");
  refused(R"({"w": 0})", "tensor 'w': the number 0");
  refused(R"({"w": {}})", "tensor 'w': it has no saved_offsets");
  refused(R"({"w": {"offsets": [0, 0]}})", "tensor 'w': it has no saved_offsets");
  refused(R"({"w": {"saved_offsets": 0}})", "tensor 'w': saved_offsets: the number 0");
  refused(R"({"w": {"saved_offsets": {}}})", "tensor 'w': saved_offsets: an object");
  refused(R"({"w": {"saved_offsets": [[0, 0]]}})", "tensor 'w': saved_offsets[0]: a list");
  refused(R"({"w": {"saved_offsets": [0, "0"]}})", "tensor 'w': saved_offsets[1]: a string");
  refused(R"({"w": {"saved_offsets": [0, null]}})", "tensor 'w': saved_offsets[1]: null");
  refused(R"({"w": {"saved_offsets": [0, true]}})", "tensor 'w': saved_offsets[1]: a boolean");
  refused(R"({"w": {"saved_offsets": [0, -1]}})",
          "tensor 'w': saved_offsets[1]: the negative number -1");
  refused(R"({"w": {"saved_offsets": [0, 0.5]}})",
          "tensor 'w': saved_offsets[1]: the number 0.5, which");
  refused(R"({"w": {"saved_offsets": [0, 9223372036854775808]}})", "beyond 64 bits");
  refused(R"({"w": {"saved_offsets": [0, 0], "saved_offsets": [0, 0]}})", "saved_offsets twice");
  refused(R"({"w": {"saved_offsets": [0, 0]}, "w": {"saved_offsets": [0, 0]}})", "twice");
  refused(R"({"w": {"x": )" + std::string(500, '[') + std::string(500, ']') + "}}",
          "nested too deeply");
  refused(R"({"w": {"saved_offsets": [0, 0]}} x)", "malformed JSON");
  refused(std::string("{}\0", 3), "DCP_SHARDING_INFO: there is a zero byte at byte 2 of the JSON");
}

TEST(TensorIndex, RefusesHashesThatAreNone) {
  const auto refused = [](const std::string& text, const std::string& part) {
    const Error error = error_of([&] { index_with({{kTensorHashesKey, text}}); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    EXPECT_TRUE(holds(error.message(), part)) << text;
  };
  const std::string hash = hash_hex("x");
  EXPECT_EQ(index_with({{kTensorHashesKey, tensor_hashes_text({{"w", hash}})}})
                .tensors.at("w")
                .pieces.front()
                .hash,
            hash);
  EXPECT_EQ(index_with({{kTensorHashesKey, "{}"}}).tensors.at("w").pieces.front().hash, "");
  refused("", "malformed JSON");
  refused("\"x\"", "TITAN_XXH3_128: a string");
  refused("[]", "TITAN_XXH3_128: a list");
  refused(R"({"w": 1})", "tensor 'w': the number 1");
  refused(R"({"w": {}})", "tensor 'w': an object");
  refused(R"({"w": "abc"})", "tensor 'w': 'abc' is not a hash of 32 hexadecimal digits");
  refused("{\"w\": \"" + hash + "\", \"w\": \"" + hash + "\"}", "twice");
}

TEST(TensorIndex, WritesTheTextsThatItReads) {
  const std::map<std::string, Numbers> offsets{{"w", {3, 0}}, {"scalar", {}}, {"t\u00fcr\"", {7}}};
  EXPECT_EQ(sharding_text(offsets),
            R"({"scalar": {"saved_offsets": []}, "t\u00fcr\"": {"saved_offsets": [7]}, )"
            R"("w": {"saved_offsets": [3, 0]}})");
  EXPECT_EQ(parse_sharding(sharding_text(offsets), "here"), offsets);
  const std::map<std::string, std::string> hashes{{"a", hash_hex("a")}, {"\u00fc", hash_hex("b")}};
  EXPECT_EQ(parse_tensor_hashes(tensor_hashes_text(hashes), "here"), hashes);
}

TEST(TensorIndex, TakesThousandsOfPiecesInTimeThatGrowsWithTheirNumber) {
  std::vector<std::filesystem::path> files;
  std::vector<SafetensorsHeader> headers;
  constexpr int64_t kPieces = 50'000;
  for (int64_t i = 0; i < kPieces; ++i) {
    files.push_back(std::to_string(i));
    SafetensorsHeader& header = headers.emplace_back();
    header.tensors.push_back({"w", "F32", {1, 2}, 0, 8});
    // sharded along the second dimension, in random order
    header.metadata[kShardingKey] = sharding_text({{"w", {0, i * 7919 % kPieces * 2}}});
  }
  EXPECT_EQ(index_headers(files, headers).tensors.at("w").shape, (Numbers{1, 2 * kPieces}));
}

TEST(SafetensorsFiles, NamesTheFolderThatIsNotThere) {
  const TestFolder folder;
  const Error error = error_of([&] { safetensors_files(folder.path() / "none"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(),
            "cannot list folder " + folder.at("none") + ": No such file or directory");
}

}  // namespace
}  // namespace titan
