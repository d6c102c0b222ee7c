// titan/checkpoints/manifest.h: manifests survive writing and reading; every refusal.

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <titan/checkpoints/manifest.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/checkpoints/shards.h"

namespace titan {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;

CheckpointManifest example() {
  CheckpointManifest manifest;
  manifest.contents = Contents::weights;
  manifest.step = 1200;
  manifest.tokens_seen = 9'830'400;
  manifest.tokens_learned = 7'000'001;
  manifest.lr_step = 1199;
  manifest.loss_scale = 32768;
  manifest.loss_scale_steps = 77;
  manifest.seed = 7;
  manifest.model = "llama3";
  manifest.flavor = "8B";
  dist::Grid grid(dist::MeshShape{.pp = 2, .dp_shard = 4, .tp = 2});
  grid.add("depth", 3);
  grid.borrow("experts", 4, {"tp", "dp_shard"});
  manifest.layout = {grid.axes()};
  manifest.files = {{"shard-00001.safetensors", 4096, hash_hex("a"), hash_hex("b")},
                    {"data-00001.json", 17, hash_hex("c"), "", 8, 4}};
  manifest.config = Value::map({{"job", Value::map({{"description", "Gr\u00f6\u00dfe"}})}});
  manifest.program = "titan 0.1.0 (release)";
  manifest.time = 1700000000.125;
  manifest.lineage = {.job = hash_hex("job"),
                      .branch = 2,
                      .ancestors = {{hash_hex("job"), 0, 10}, {hash_hex("job"), 1, 20}},
                      .parent = Lineage::Point{hash_hex("job"), 1, 20},
                      .start = {20, {"optimizer", "dataloader"}, "/weights"},
                      .time = 1700000000.5};
  return manifest;
}

void expect_equal(const CheckpointManifest& a, const CheckpointManifest& b) {
  EXPECT_EQ(a.contents, b.contents);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.tokens_seen, b.tokens_seen);
  EXPECT_EQ(a.tokens_learned, b.tokens_learned);
  EXPECT_EQ(a.lr_step, b.lr_step);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
  EXPECT_EQ(a.loss_scale_steps, b.loss_scale_steps);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.flavor, b.flavor);
  EXPECT_EQ(to_value(a.layout), to_value(b.layout));
  EXPECT_EQ(a.layout.world_size(), b.layout.world_size());
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.program, b.program);
  EXPECT_EQ(a.time, b.time);
  EXPECT_EQ(to_value(a.lineage), to_value(b.lineage));
  ASSERT_EQ(a.files.size(), b.files.size());
  for (size_t i = 0; i < a.files.size(); ++i) {
    EXPECT_EQ(a.files[i].name, b.files[i].name);
    EXPECT_EQ(a.files[i].bytes, b.files[i].bytes);
    EXPECT_EQ(a.files[i].hash, b.files[i].hash);
    EXPECT_EQ(a.files[i].header_hash, b.files[i].header_hash);
    EXPECT_EQ(a.files[i].first_row, b.files[i].first_row);
    EXPECT_EQ(a.files[i].num_rows, b.files[i].num_rows);
  }
}

TEST(CheckpointManifest, ReadsBackWhatItWrites) {
  expect_equal(parse_checkpoint_manifest(to_text(example()), "here"), example());
  CheckpointManifest empty;
  empty.config = Value::map();
  expect_equal(parse_checkpoint_manifest(to_text(empty), "here"), empty);
}

TEST(CheckpointManifest, SaysHowItsBranchBegan) {
  const CheckpointManifest read = parse_checkpoint_manifest(to_text(example()), "a");
  EXPECT_EQ(read.lineage.branch, 2);
  ASSERT_TRUE(read.lineage.parent);
  EXPECT_EQ(read.lineage.parent->step, 20);
  EXPECT_EQ(read.lineage.start.load_step, 20);
  EXPECT_EQ(read.lineage.start.excluded, (std::vector<std::string>{"optimizer", "dataloader"}));
}

TEST(CheckpointManifest, KnowsTheStepsThatItsBranchDescendsFrom) {
  const Lineage lineage = example().lineage;
  EXPECT_EQ(lineage.place_of(0, 10), 0U);
  EXPECT_EQ(lineage.place_of(0, 11), std::nullopt);  // after the next branch had started
  EXPECT_EQ(lineage.place_of(1, 20), 1U);
  EXPECT_EQ(lineage.place_of(2, 500), 2U);
  EXPECT_EQ(lineage.place_of(3, 1), std::nullopt);
}

TEST(CheckpointManifest, RefusesALineageOfANewerProgram) {
  std::string text = to_text(example());
  const std::string version = "\"lineage\": {\n  \"version\": 1";
  const size_t place = text.find(version);
  ASSERT_NE(place, std::string::npos);
  text.replace(place, version.size(), "\"lineage\": {\n  \"version\": 2");
  EXPECT_TRUE(
      holds(error_of([&] { parse_checkpoint_manifest(with_own_hash(text), "a"); }).message(),
            "cannot read a: lineage.version is 2, but this program reads up to 1"));
}

TEST(CheckpointManifest, KeepsSeedsOf64Bits) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1,
                              std::numeric_limits<uint64_t>::max()}) {
    CheckpointManifest manifest = example();
    manifest.seed = seed;
    EXPECT_EQ(parse_checkpoint_manifest(to_text(manifest), "here").seed, seed);
  }
}

TEST(CheckpointManifest, IsReadFromItsFolder) {
  const TestCheckpoint checkpoint;
  expect_equal(read_checkpoint_manifest(checkpoint.path), checkpoint.manifest);
  const TestFolder folder;
  const Error missing = error_of([&] { read_checkpoint_manifest(folder.path()); });
  EXPECT_EQ(missing.kind(), ErrorKind::io);
  EXPECT_EQ(missing.message(),
            "cannot open " + folder.at("manifest.json") + ": No such file or directory");
  folder.write("manifest.json", "{");
  const Error malformed = error_of([&] { read_checkpoint_manifest(folder.path()); });
  EXPECT_EQ(malformed.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(malformed.message(), "cannot read " + folder.at("manifest.json") + ": malf"));
}

TEST(CheckpointManifest, StartsWithItsFormatAndVersion) {
  EXPECT_TRUE(to_text(example()).starts_with(
      "{\n \"format\": \"titan checkpoint\",\n \"version\": 2,\n \"contents\": \"weights\",\n"));
}

TEST(CheckpointManifest, IsRefusedAfterAnyFlippedBit) {
  const std::string sound = to_text(example());
  for (size_t i = 0; i < sound.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sound;
      changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
      const Error error = error_of([&] { parse_checkpoint_manifest(changed, "here"); });
      ASSERT_EQ(error.kind(), ErrorKind::data) << "bit " << bit << " of byte " << i;
      ASSERT_TRUE(error.message().starts_with("cannot read here: "));
    }
}

TEST(CheckpointManifest, SaysThatItWasChanged) {
  std::string text = to_text(example());
  const std::string hash = parse_json(text).at("xxh3_128").as_string();
  std::string zeroed = text;
  zeroed.replace(text.rfind(hash), 32, 32, '0');
  EXPECT_EQ(hash, hash_hex(zeroed));
  text.replace(text.find("1200"), 4, "1201");
  zeroed.replace(zeroed.find("1200"), 4, "1201");
  EXPECT_EQ(error_of([&] { parse_checkpoint_manifest(text, "here"); }).message(),
            "cannot read here: xxh3_128 is " + hash + ", but that of the text is " +
                hash_hex(zeroed) + ": it was changed after it was written");
}

/// The format before manifests carried their own hash.
std::string first_version() {
  Value value = parse_json(to_text(example()));
  value["version"] = 1;
  std::erase_if(value.as_map(), [](const auto& member) { return member.first == "xxh3_128"; });
  return to_json(value, 1) + "\n";
}

TEST(CheckpointManifest, ReadsTheVersionWithoutAHash) {
  const CheckpointManifest manifest = parse_checkpoint_manifest(first_version(), "here");
  EXPECT_FALSE(manifest.carries_hash);
  expect_equal(manifest, example());
  EXPECT_TRUE(parse_checkpoint_manifest(to_text(manifest), "here").carries_hash);
}

TEST(CheckpointManifest, CountsTheSameTokensWhereItSaysOneNumber) {
  Value value = parse_json(to_text(example()));
  std::erase_if(value.as_map(),
                [](const auto& member) { return member.first == "tokens_learned"; });
  const CheckpointManifest found =
      parse_checkpoint_manifest(with_own_hash(to_json(value)), "step-3/manifest.json");
  EXPECT_EQ(found.tokens_learned, example().tokens_seen);
}

TEST(CheckpointManifest, IsOfTheStepThatItsFolderIsNamedFor) {
  const TestFolder folder;
  CheckpointManifest manifest = example();
  const auto read_in = [&](const std::string& name) {
    folder.write(name + "/manifest.json", to_text(manifest));
    return read_checkpoint_manifest(folder.path() / name).step;
  };
  for (const Contents contents : {Contents::training, Contents::weights}) {
    manifest.contents = contents;
    EXPECT_EQ(read_in("step-1200"), 1200);
    EXPECT_EQ(read_in("kept"), 1200);
    EXPECT_EQ(error_of([&] { read_in("step-1201"); }).message(),
              folder.at("step-1201/manifest.json") +
                  " is of step 1200, but its folder is named for step 1201: one of the two was "
                  "changed; use another checkpoint, or give the folder its own name back");
    EXPECT_EQ(error_of([&] { read_checkpoint_manifest(folder.at("step-1201/")); }).kind(),
              ErrorKind::data);
  }
  manifest.step = 0;
  EXPECT_EQ(read_in("step-1201"), 0) << "converted weights may be in any folder";
  manifest.contents = Contents::training;
  EXPECT_EQ(error_of([&] { read_in("step-1201"); }).kind(), ErrorKind::data);
}

/// The manifest's JSON after a change, and the message of its refusal.
void expect_refused(const std::function<void(Value&)>& change, const std::string& part) {
  Value value = parse_json(to_text(example()));
  change(value);
  const Error error = error_of(
      [&] { parse_checkpoint_manifest(with_own_hash(to_json(value)), "step-3/manifest.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::data) << part;
  EXPECT_EQ(error.message(), "cannot read step-3/manifest.json: " + part);
}

TEST(CheckpointManifest, RefusesWhatIsMissing) {
  for (const char* name :
       {"format", "version", "contents", "step", "tokens_seen", "lr_step", "seed", "model",
        "flavor", "layout", "time", "program", "files", "config"})  // the hash is computed anew
    expect_refused(
        [&](Value& value) {
          std::erase_if(value.as_map(), [&](const auto& member) { return member.first == name; });
        },
        std::string(name) + " is missing");
  for (const char* name : {"name", "bytes", "xxh3_128"})
    expect_refused(
        [&](Value& value) {
          std::erase_if(value["files"].as_list()[1].as_map(),
                        [&](const auto& member) { return member.first == name; });
        },
        std::string("files[1].") + name + " is missing");
  for (const char* name : {"pp", "dp_replicate", "dp_shard", "cp", "tp"})
    expect_refused(
        [&](Value& value) {
          std::erase_if(value["layout"].as_map(),
                        [&](const auto& member) { return member.first == name; });
        },
        std::string("layout.") + name + " is missing");
}

TEST(CheckpointManifest, RefusesWrongTypes) {
  const auto set = [](const char* name, Value to) {
    return [=](Value& value) { value[name] = to; };
  };
  expect_refused(set("format", 1), "format is the integer 1, but must be a string");
  expect_refused(set("version", "1"), "version is the string '1', but must be an integer");
  expect_refused(set("step", 3.0), "step is the number 3.0, but must be an integer");
  expect_refused(set("step", Value()), "step is a null, but must be an integer");
  expect_refused(set("time", "now"), "time is the string 'now', but must be a number");
  expect_refused(set("files", Value::map()), "files is a map, but must be a list");
  expect_refused(set("files", Value::list({1})), "files[0] is the integer 1, but must be a map");
  expect_refused(set("layout", Value::list()), "layout is a list, but must be a map");
  expect_refused(set("config", "x"), "config is the string 'x', but must be a map");
  expect_refused(set("seed", true), "seed is the boolean true, but must be an integer");
}

TEST(CheckpointManifest, RefusesValuesThatCannotBe) {
  const auto set = [](const char* name, Value to) {
    return [=](Value& value) { value[name] = to; };
  };
  const auto set_file = [](const char* name, Value to) {
    return [=](Value& value) { value["files"].as_list()[1][name] = to; };
  };
  expect_refused(set("format", "zip"), "format is 'zip', but must be 'titan checkpoint'");
  expect_refused(set("version", 3),
                 "version is 3, but this program reads up to 2: it was written by a newer one");
  expect_refused(set("version", 0), "version is 0, but must be at least 1");
  expect_refused(set("contents", "all"), "contents is 'all', but must be 'training' or 'weights'");
  for (const char* name : {"step", "tokens_seen", "tokens_learned", "lr_step", "seed"})
    expect_refused(set(name, -1), std::string(name) + " is -1, but must be at least 0");
  expect_refused(set("seed", "18446744073709551616"),
                 "seed is '18446744073709551616', which is not a 64-bit integer");
  expect_refused(set("seed", "7x"), "seed is '7x', which is not a 64-bit integer");
  expect_refused(set("seed", ""), "seed is '', which is not a 64-bit integer");
  expect_refused([](Value& value) { value["layout"]["tp"] = 0; },
                 "layout.tp is 0, but must be at least 1");
  expect_refused(
      [](Value& value) {
        value["layout"]["cp"] = int64_t{1} << 40;
        value["layout"]["tp"] = int64_t{1} << 40;
      },
      "layout.tp makes the number of ranks larger than 64 bits with sign");
  expect_refused(set_file("bytes", -1), "files[1].bytes is -1, but must be at least 0");
  expect_refused(set_file("num_rows", 0), "files[1].num_rows is 0, but must be at least 1");
  expect_refused(set_file("first_row", -1), "files[1].first_row is -1, but must be at least 0");
  expect_refused(set_file("first_row", std::numeric_limits<int64_t>::max()),
                 "files[1].first_row is beyond 64 bits with sign");
  for (const char* name : {"xxh3_128", "header_xxh3_128"})
    for (const char* hash : {"", "00", "0123456789ABCDEF0123456789abcdef"})
      expect_refused(set_file(name, hash), std::string("files[1].") + name + " is '" + hash +
                                               "', but must be 32 hexadecimal digits");
}

TEST(CheckpointManifest, RefusesFileNamesThatLeaveItsFolder) {
  for (const char* name : {"", ".", "..", "/etc/passwd", "../a", "a/b", "manifest.json"})
    expect_refused([&](Value& value) { value["files"].as_list()[0]["name"] = name; },
                   std::string("files[0].name is '") + name +
                       "', but must be the name of a file in the checkpoint's folder");
  expect_refused(
      [](Value& value) { value["files"].as_list()[0]["name"] = std::string("a\0b", 3); },
      "files[0].name is 'a\\x00b', but must be the name of a file in the checkpoint's folder");
  expect_refused(
      [](Value& value) {
        value["files"].as_list()[1]["name"] = value["files"].as_list()[0]["name"];
      },
      "files[1].name is 'shard-00001.safetensors' a second time");
}

TEST(CheckpointManifest, RefusesTextThatIsNoJson) {
  const std::string text = to_text(example());
  for (const std::string& malformed :
       {std::string(), std::string("[]"), std::string("null"), text.substr(0, text.size() / 2),
        text + "x", text + std::string("\0x", 2),
        std::string(10'000, '[') + std::string(10'000, ']'), std::string("\xFF")}) {
    const Error error = error_of([&] { parse_checkpoint_manifest(malformed, "here"); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << malformed.substr(0, 80);
    EXPECT_TRUE(error.message().starts_with("cannot read here: ")) << error.message();
  }
}

}  // namespace
}  // namespace titan
