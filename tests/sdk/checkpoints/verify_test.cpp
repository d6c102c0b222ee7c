// titan/checkpoints/verify.h: finds every damage and names the file and tensor.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/checkpoints/verify.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/checkpoints/shards.h"

namespace titan {
namespace {

using testing::error_of;
using testing::holds;

const std::string kShard = "shard-00001.safetensors";

std::vector<std::string> damage_of(const TestCheckpoint& checkpoint) {
  return find_damage(checkpoint.path, checkpoint.manifest);
}

/// The problems found when a checkpoint is opened; empty when there are none.
std::string opening_error(const TestCheckpoint& checkpoint) {
  try {
    open_checkpoint(checkpoint.path, checkpoint.manifest);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_TRUE(holds(e.message(), "checkpoint " + checkpoint.path.string() + " is damaged:\n  "));
    return e.message();
  }
  return "";
}

std::string at(const TestCheckpoint& checkpoint, const std::string& name) {
  return (checkpoint.path / name).string();
}

/// The tensor of the first shard that owns byte `position`; empty for the header.
std::string owner(const std::string& file, int64_t position) {
  const SafetensorsHeader header = parse_header(file, static_cast<int64_t>(file.size()), "file");
  for (const TensorEntry& entry : header.tensors)
    if (position >= header.data_start + entry.begin && position < header.data_start + entry.end)
      return entry.name;
  return "";
}

TEST(Verify, FindsNothingInASoundCheckpoint) {
  const TestCheckpoint checkpoint;
  int64_t progress = 0;
  EXPECT_EQ(
      find_damage(checkpoint.path, checkpoint.manifest, [&](int64_t bytes) { progress += bytes; }),
      std::vector<std::string>());
  int64_t bytes = 0;
  for (const ManifestFile& file : checkpoint.manifest.files) bytes += file.bytes;
  EXPECT_EQ(progress, bytes);

  const TensorIndex index = open_checkpoint(checkpoint.path, checkpoint.manifest);
  EXPECT_EQ(index.files.size(), 2u);
  EXPECT_EQ(index.tensors.size(), 4u);
  EXPECT_EQ(index.tensors.at("w").shape, (std::vector<int64_t>{5, 4}));
}

TEST(Verify, NamesTheTensorOfEveryFlippedByte) {
  const TestCheckpoint checkpoint;
  const std::string sound = checkpoint.read(kShard);
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string changed = sound;
    changed[i] ^= 1 << i % 8;
    checkpoint.write(kShard, changed);
    const auto damage = damage_of(checkpoint);
    ASSERT_EQ(damage.size(), 1u) << "byte " << i;
    EXPECT_TRUE(holds(damage[0], at(checkpoint, kShard) + ": "));
    const std::string tensor = owner(sound, static_cast<int64_t>(i));
    EXPECT_TRUE(holds(damage[0], tensor.empty() ? "its header, which says where its tensors are"
                                                : "tensor '" + tensor + "' was changed"))
        << "byte " << i;
    // opening a checkpoint compares headers; only a full verification compares bytes of tensors
    EXPECT_EQ(opening_error(checkpoint).empty(), !tensor.empty()) << "byte " << i;
  }
}

TEST(Verify, NamesTheTensorsThatATruncationCutsOff) {
  const TestCheckpoint checkpoint;
  const std::string sound = checkpoint.read(kShard);
  const SafetensorsHeader header = parse_header(sound, static_cast<int64_t>(sound.size()), kShard);
  for (size_t length = 0; length < sound.size(); ++length) {
    checkpoint.write(kShard, sound.substr(0, length));
    const auto damage = damage_of(checkpoint);
    std::string text;
    for (const std::string& line : damage) text += line + "\n";
    EXPECT_TRUE(holds(text, "it is cut off: " + std::to_string(length) + " of its " +
                                std::to_string(sound.size()) + " bytes are there"));
    EXPECT_TRUE(holds(opening_error(checkpoint), "it is cut off: "));
    const bool has_header = static_cast<int64_t>(length) >= header.data_start;
    EXPECT_EQ(text.find("all its tensors are lost") != std::string::npos, !has_header) << length;
    if (!has_header) continue;
    for (const TensorEntry& entry : header.tensors) {
      const bool is_cut = header.data_start + entry.end > static_cast<int64_t>(length);
      EXPECT_EQ(text.find("tensor '" + entry.name + "' is cut off") != std::string::npos, is_cut)
          << entry.name << " at length " << length << ": " << text;
    }
  }
}

TEST(Verify, SaysHowMuchOfATensorIsLeft) {
  const TestCheckpoint checkpoint;
  const std::string sound = checkpoint.read(kShard);
  checkpoint.write(kShard, sound.substr(0, sound.size() - 2));
  EXPECT_EQ(damage_of(checkpoint),
            (std::vector<std::string>{
                at(checkpoint, kShard) + ": it is cut off: " + std::to_string(sound.size() - 2) +
                    " of its " + std::to_string(sound.size()) + " bytes are there",
                at(checkpoint, kShard) + ": tensor 'b' is cut off: 4 of its 6 bytes are there"}));
}

TEST(Verify, FindsTheChangedTensorOfATruncatedFile) {
  const TestCheckpoint checkpoint;
  std::string changed = checkpoint.read(kShard);
  const SafetensorsHeader header =
      parse_header(changed, static_cast<int64_t>(changed.size()), kShard);
  changed[header.data_start] ^= 1;
  changed.pop_back();
  checkpoint.write(kShard, changed);
  const auto damage = damage_of(checkpoint);
  ASSERT_EQ(damage.size(), 3u);
  EXPECT_TRUE(holds(damage[0], "tensor 'optim.exp_avg.w' was changed"));
  EXPECT_TRUE(holds(damage[2], "tensor 'b' is cut off"));
}

TEST(Verify, NamesFilesThatAreMissingOrTooLong) {
  const TestCheckpoint checkpoint;
  std::filesystem::remove(checkpoint.path / kShard);
  checkpoint.write("data-00001.json", "{\"rows\": []}\n");
  const auto damage = damage_of(checkpoint);
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_EQ(damage[0], "cannot open " + at(checkpoint, kShard) + ": No such file or directory");
  EXPECT_EQ(damage[1], at(checkpoint, "data-00001.json") + ": 13 bytes, but 12 were written");
  EXPECT_EQ(opening_error(checkpoint), "checkpoint " + checkpoint.path.string() +
                                           " is damaged:\n  " + damage[0] + "\n  " + damage[1]);
}

TEST(Verify, FindsChangesInFilesThatAreNoSafetensors) {
  const TestCheckpoint checkpoint;
  checkpoint.write("data-00001.json", "{\"rows\": [1}");
  EXPECT_EQ(damage_of(checkpoint), std::vector<std::string>{at(checkpoint, "data-00001.json") +
                                                            ": its content was changed"});
  EXPECT_EQ(opening_error(checkpoint), "");
}

TEST(Verify, TellsAWrongHashInTheManifestFromAChangedTensor) {
  TestCheckpoint checkpoint;
  checkpoint.manifest.files[0].hash = hash_hex("another");
  const auto damage = damage_of(checkpoint);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_TRUE(holds(damage[0], "its hash in the manifest was changed"));
}

TEST(Verify, FindsChangesOfTensorsWithoutAHashOfTheirOwn) {
  TestCheckpoint checkpoint;
  std::vector<TensorEntry> tensors{{"v", "F32", {2}}};
  lay_out(tensors);
  std::string content = header_bytes(tensors, {}) + pattern(8);
  checkpoint.add("more.safetensors", content);
  EXPECT_TRUE(damage_of(checkpoint).empty());
  content.back() ^= 1;
  checkpoint.write("more.safetensors", content);
  EXPECT_EQ(damage_of(checkpoint),
            std::vector<std::string>{at(checkpoint, "more.safetensors") +
                                     ": it was changed, in a tensor without a hash of its own"});
}

TEST(Verify, FindsAShardOfAnotherCheckpoint) {
  const TestCheckpoint checkpoint;
  checkpoint.write(kShard, shard_file({{"w", "F32", {3, 4}, {0, 0}},
                                       {"optim.exp_avg.w", "F32", {3, 4}, {0, 0}},
                                       {"c", "BF16", {3}, {0}}}));
  EXPECT_TRUE(holds(opening_error(checkpoint), "its header, which says where its tensors are"));
  EXPECT_EQ(damage_of(checkpoint).size(), 1u);
}

TEST(Verify, FindsPiecesThatDoNotFitTogether) {
  TestCheckpoint checkpoint;
  checkpoint.add("shard-00003.safetensors", shard_file({{"w", "F32", {1, 4}, {4, 0}}}));
  const auto damage = damage_of(checkpoint);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_TRUE(holds(damage[0], "tensor 'w' is stored twice in part"));
  EXPECT_TRUE(holds(damage[0], at(checkpoint, "shard-00003.safetensors")));
  EXPECT_TRUE(holds(opening_error(checkpoint), damage[0]));
}

TEST(Verify, ReadsFilesLargerThanItsBuffer) {
  TestCheckpoint checkpoint;
  const std::string name = "large.safetensors";
  std::string content = shard_file({{"p", "F32", {1 << 20}},
                                    {"q", "F32", {1 << 20}},
                                    {"r", "F32", {3'000'001}},
                                    {"s", "F32", {0}}});
  checkpoint.add(name, content);
  EXPECT_EQ(damage_of(checkpoint), std::vector<std::string>());
  const SafetensorsHeader header = parse_header(content, static_cast<int64_t>(content.size()), "");
  for (const char* tensor : {"p", "r"}) content[header.data_start + header.find(tensor)->begin]++;
  checkpoint.write(name, content);
  const auto damage = damage_of(checkpoint);
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_TRUE(holds(damage[0], "tensor 'p' was changed"));
  EXPECT_TRUE(holds(damage[1], "tensor 'r' was changed"));
}

TEST(Verify, ShowsAtMostTwentyDamagesWhenOpening) {
  TestCheckpoint checkpoint;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "lost-" + std::to_string(i);
    checkpoint.add(name, "x");
    std::filesystem::remove(checkpoint.path / name);
  }
  EXPECT_TRUE(opening_error(checkpoint).ends_with("\n  and 10 more"));
  EXPECT_EQ(damage_of(checkpoint).size(), 30u);
}

}  // namespace
}  // namespace titan
