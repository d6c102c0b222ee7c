// Streams of tensors from their stored pieces, compared with ATen's copies, conversions and
// permutations.
#include "core/exchange/tensor_copy.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include <ATen/TensorIndexing.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::holds;
using testing::Stored;
using testing::TestFolder;
using testing::write_stored;

/// The stream's bytes, and the size of its largest block.
struct Streamed {
  std::string bytes;
  int64_t largest = 0;
};

Streamed stream(const TensorIndex& index, const std::string& name, const TensorForm& form) {
  Streamed result;
  TensorStream(index).read(name, form, [&](const char* data, int64_t bytes) {
    result.bytes.append(data, bytes);
    result.largest = std::max(result.largest, bytes);
  });
  return result;
}

TEST(TensorCopy, JoinsRectanglesOfAnyCut) {
  const TestFolder folder;
  const at::Tensor whole = at::randn({10, 6, 7});
  using at::indexing::Slice;
  const auto piece = [&](Slice a, Slice b, Slice c, std::vector<int64_t> offsets) {
    return Stored{"w", whole.index({a, b, c}).contiguous(), std::move(offsets)};
  };
  const std::vector<std::vector<Stored>> cuts = {
      {piece(Slice(), Slice(), Slice(), {0, 0, 0})},
      {piece(Slice(0, 4), Slice(), Slice(), {0, 0, 0}),
       piece(Slice(4), Slice(), Slice(), {4, 0, 0})},
      {piece(Slice(), Slice(0, 5), Slice(), {0, 0, 0}),
       piece(Slice(), Slice(5), Slice(), {0, 5, 0})},
      {piece(Slice(), Slice(), Slice(0, 2), {0, 0, 0}),
       piece(Slice(), Slice(), Slice(2), {0, 0, 2})},
      {piece(Slice(3), Slice(), Slice(), {3, 0, 0}),
       piece(Slice(0, 3), Slice(0, 2), Slice(0, 3), {0, 0, 0}),
       piece(Slice(0, 3), Slice(2), Slice(0, 3), {0, 2, 0}),
       piece(Slice(0, 3), Slice(), Slice(3), {0, 0, 3})}};
  for (size_t i = 0; i < cuts.size(); ++i) {
    std::vector<std::filesystem::path> files;
    for (const Stored& stored : cuts[i])
      files.push_back(write_stored(
          folder, std::to_string(i) + "_" + std::to_string(files.size()) + ".safetensors",
          {stored}));
    EXPECT_EQ(stream(index_files(files), "w", {.dtype = "F32"}).bytes, bytes_of(whole)) << i;
  }
}

TEST(TensorCopy, TakesLargeTensorsInBlocks) {
  const TestFolder folder;
  const at::Tensor whole = at::randn({6000, 1000});  // 24 MB
  const std::vector<std::filesystem::path> files = {
      write_stored(folder, "a.safetensors", {{"w", whole.narrow(1, 0, 300), {0, 0}}}),
      write_stored(folder, "b.safetensors", {{"w", whole.narrow(1, 300, 700), {0, 300}}})};
  const TensorIndex index = index_files(files);
  const Streamed streamed = stream(index, "w", {.dtype = "F32"});
  EXPECT_EQ(streamed.bytes, bytes_of(whole));
  EXPECT_LE(streamed.largest, int64_t{8} << 20);
  EXPECT_EQ(stream(index, "w", {.dtype = "BF16"}).bytes, bytes_of(whole.to(at::kBFloat16)));
}

TEST(TensorCopy, RoundsAsTorchDoes) {
  const TestFolder folder;
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor special =
      at::tensor({0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, -3e-8, 6e-8, 1 + 1.0 / 256,
                  1 + 3.0 / 256, 1 + 1.0 / 2048, 1 + 3.0 / 2048, 65504.0, 1e-45},
                 at::kDouble);
  const at::Tensor values = at::cat({special, at::randn({5000}, at::kDouble) * 30});
  const std::pair<const char*, at::ScalarType> kTypes[] = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}};
  for (const auto& [from_name, from] : kTypes)
    for (const auto& [to_name, to] : kTypes) {
      const at::Tensor stored = values.to(from);
      if (from == at::kHalf || to != at::kHalf ||
          from != at::kBFloat16) {  // 65504 in BF16 is 65536
        const TensorIndex index =
            index_files({write_stored(folder, "x.safetensors", {{"x", stored}})});
        EXPECT_EQ(stream(index, "x", {.dtype = to_name}).bytes, bytes_of(stored.to(to)))
            << from_name << " -> " << to_name;
      }
    }
}

TEST(TensorCopy, RefusesToLoseAValue) {
  const TestFolder folder;
  const TensorIndex index = index_files(
      {write_stored(folder, "x.safetensors", {{"x", at::tensor({1.0f, 70000.0f, 2.0f})}})});
  const Error error = error_of([&] { stream(index, "x", {.dtype = "F16"}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "tensor x holds 70000, which F16 cannot hold"));
  EXPECT_EQ(stream(index, "x", {.dtype = "BF16"}).bytes.size(), 6u);
}

TEST(TensorCopy, TurnsPairsIntoHalvesAndBack) {
  const TestFolder folder;
  const int64_t heads = 6, size = 8, width = 5;
  for (const bool is_bias : {false, true}) {
    const at::Tensor pairs = is_bias ? at::rand({heads * size}) : at::rand({heads * size, width});
    const at::Tensor halves =
        pairs.view({heads, size / 2, 2, -1}).transpose(1, 2).reshape(pairs.sizes());
    const TensorIndex index = index_files(
        {write_stored(folder, "w.safetensors", {{"pairs", pairs}, {"halves", halves}})});
    const TensorForm to_halves = {
        .dtype = "F32", .order = RowOrder::pairs_to_halves, .num_heads = heads};
    const TensorForm to_pairs = {
        .dtype = "F32", .order = RowOrder::halves_to_pairs, .num_heads = heads};
    EXPECT_EQ(stream(index, "pairs", to_halves).bytes, bytes_of(halves));
    EXPECT_EQ(stream(index, "halves", to_pairs).bytes, bytes_of(pairs));
    // row by row, by the formula: row 2j + r in pairs is row r * size / 2 + j in halves
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t j = 0; j < size / 2; ++j)
        for (int64_t r = 0; r < 2; ++r)
          EXPECT_TRUE(testing::same_bytes(halves[head * size + r * size / 2 + j],
                                          pairs[head * size + 2 * j + r]));
  }
  const TensorIndex index =
      index_files({write_stored(folder, "odd.safetensors", {{"w", at::zeros({15, 2})}})});
  const Error error = error_of([&] {
    stream(index, "w", {.dtype = "F32", .order = RowOrder::pairs_to_halves, .num_heads = 5});
  });
  EXPECT_TRUE(holds(error.what(), "tensor w has 15 rows, which do not divide into 5 heads"));
}

TEST(TensorCopy, KeepsHeadsTogetherAcrossBlocksAndPieces) {
  const TestFolder folder;
  const int64_t heads = 48, size = 128, width = 700;  // 17 MB in three blocks
  const at::Tensor pairs = at::randn({heads * size, width});
  const std::vector<std::filesystem::path> files = {
      write_stored(folder, "a.safetensors", {{"w", pairs.narrow(0, 0, 1001), {0, 0}}}),
      write_stored(folder, "b.safetensors",
                   {{"w", pairs.narrow(0, 1001, heads * size - 1001), {1001, 0}}})};
  const at::Tensor halves =
      pairs.view({heads, size / 2, 2, width}).transpose(1, 2).reshape(pairs.sizes());
  EXPECT_EQ(stream(index_files(files), "w",
                   {.dtype = "BF16", .order = RowOrder::pairs_to_halves, .num_heads = heads})
                .bytes,
            bytes_of(halves.to(at::kBFloat16)));
}

TEST(TensorCopy, TakesScalarsAndEmptyTensors) {
  const TestFolder folder;
  const TensorIndex index = index_files({write_stored(folder, "x.safetensors",
                                                      {{"scalar", at::tensor(3.5f).squeeze()},
                                                       {"empty", at::zeros({0, 4})},
                                                       {"step", at::arange(1)}})});
  EXPECT_EQ(stream(index, "scalar", {.dtype = "F64"}).bytes,
            bytes_of(at::tensor(3.5, at::kDouble)));
  EXPECT_EQ(stream(index, "empty", {.dtype = "F32"}).bytes, "");
  const Error error = error_of([&] { stream(index, "step", {.dtype = "F32"}); });
  EXPECT_TRUE(holds(error.what(), "tensor step is of type I64 and cannot become F32"));
}

TEST(TensorCopy, SeesAFlippedBit) {
  const TestFolder folder;
  const at::Tensor whole = at::randn({64, 32});
  for (const int64_t dim : {0, 1}) {
    std::vector<std::filesystem::path> files;
    for (const int64_t half : {0, 1}) {
      std::vector<int64_t> offsets(2, 0);
      const int64_t size = whole.size(dim) / 2;
      offsets[dim] = half * size;
      files.push_back(write_stored(folder, std::to_string(half) + ".safetensors",
                                   {{"w", whole.narrow(dim, half * size, size), offsets}}));
    }
    const TensorIndex index = index_files(files);
    EXPECT_EQ(stream(index, "w", {.dtype = "F32"}).bytes, bytes_of(whole));
    std::string content = folder.read("1.safetensors");
    content[content.size() - 100] ^= 4;
    folder.write("1.safetensors", content);
    const Error error = error_of([&] { stream(index, "w", {.dtype = "F32"}); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(holds(error.what(), files[1].string() + ": tensor w is damaged"));
  }
}

}  // namespace
}  // namespace titan::core
