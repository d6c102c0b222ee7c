// plugins/commands/inspect/inspection.h: the report of `titan inspect` for sound and damaged
// folders.
#include "plugins/commands/inspect/inspection.h"

#include <string>

#include <gtest/gtest.h>

#include <titan/program/exit_codes.h>

#include "core/commands/plugin_command.h"
#include "tests/plugins/error_of.h"
#include "tests/sdk/checkpoints/shards.h"

namespace titan::commands {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;

constexpr const char* kIndexName = "model.safetensors.index.json";

Inspection quickly(const std::filesystem::path& path) {
  return inspect(path, Thoroughness::headers);
}
Inspection thoroughly(const std::filesystem::path& path) {
  return inspect(path, Thoroughness::bytes);
}

/// The text, with names relative to the folder.
std::string text_of(const Inspection& inspection, TensorList tensors = TensorList::left_out) {
  std::string text = to_text(inspection, tensors);
  return text.substr(text.find('\n') + 1);
}

TEST(Inspection, ShowsACheckpoint) {
  const TestCheckpoint checkpoint;
  const Inspection inspection = quickly(checkpoint.path);
  EXPECT_TRUE(inspection.damage.empty());
  EXPECT_TRUE(to_text(inspection, TensorList::left_out)
                  .starts_with(checkpoint.path.string() + "\n  step  "));
  EXPECT_EQ(text_of(inspection, TensorList::included),
            R"(  step         10
  contents     training: a run can resume from it
  model        llama3 debugmodel
  layout       2 ranks: dp_shard 2
  tokens seen  81,920
  seed         42
  saved        2023-11-14 22:13:20 UTC
  written by   titan 0.1.0

file                     bytes     size  tensors
shard-00001.safetensors    630    630 B        3
shard-00002.safetensors    592    592 B        3
data-00001.json             12     12 B        -
3 files                  1,234  1.2 KiB

           type  tensors  elements  bytes  size
weights    BF16        1         3      6   6 B
weights    F32         1        20     80  80 B
weights    I64         1         1      8   8 B
optimizer  F32         1        20     80  80 B

tensor           type  shape   pieces  in
b                BF16  [3]          1  shard-00001.safetensors
n                I64   []           1  shard-00002.safetensors
optim.exp_avg.w  F32   [5, 4]       2  shard-00001.safetensors ... shard-00002.safetensors
w                F32   [5, 4]       2  shard-00001.safetensors ... shard-00002.safetensors
)");
}

TEST(Inspection, GivesProgramsTheSameFacts) {
  const TestCheckpoint checkpoint;
  const Value value =
      parse_json(to_json(to_value(thoroughly(checkpoint.path), TensorList::included)));
  EXPECT_EQ(value.at("manifest").at("step").as_integer(), 10);
  EXPECT_EQ(value.at("manifest").at("layout").at("dp_shard").as_integer(), 2);
  EXPECT_EQ(value.at("files").as_list().size(), 3u);
  EXPECT_EQ(value.at("totals").as_list().size(), 4u);
  EXPECT_EQ(value.at("totals").as_list()[3].at("of").as_string(), "optimizer");
  EXPECT_EQ(value.at("totals").as_list()[3].at("elements").as_integer(), 20);
  EXPECT_EQ(value.at("verification").at("bytes").as_integer(), 1234);
  EXPECT_TRUE(value.at("damage").as_list().empty());
  const Value& w = value.at("tensors").as_list()[3];
  EXPECT_EQ(w.at("name").as_string(), "w");
  EXPECT_EQ(to_json(w.at("shape")), "[5,4]");
  EXPECT_EQ(to_json(w.at("pieces").as_list()[1].at("offsets")), "[3,0]");
  EXPECT_FALSE(quickly(checkpoint.path).verification);
  EXPECT_EQ(to_value(quickly(checkpoint.path), TensorList::left_out).find("tensors"), nullptr);
}

TEST(Inspection, NamesDamage) {
  const TestCheckpoint checkpoint;
  const std::string name = "shard-00002.safetensors";
  std::string content = checkpoint.read(name);
  content.back() ^= 1;
  checkpoint.write(name, content);
  EXPECT_TRUE(quickly(checkpoint.path).damage.empty());
  const Inspection inspection = thoroughly(checkpoint.path);
  ASSERT_EQ(inspection.damage.size(), 1u);
  EXPECT_TRUE(holds(inspection.damage[0], "tensor 'w' was changed"));
  checkpoint.write(name, content.substr(0, content.size() - 1));
  EXPECT_EQ(quickly(checkpoint.path).damage.size(), 2u);
  std::filesystem::remove(checkpoint.path / name);
  ASSERT_EQ(quickly(checkpoint.path).damage.size(), 1u);
  EXPECT_TRUE(holds(quickly(checkpoint.path).damage[0], "No such file or directory"));
  EXPECT_TRUE(holds(text_of(quickly(checkpoint.path)), name));
}

TEST(Inspection, FindsEveryFlippedBitOfEveryFile) {
  const TestCheckpoint checkpoint;
  ASSERT_TRUE(thoroughly(checkpoint.path).damage.empty());
  for (const char* name :
       {"manifest.json", "shard-00001.safetensors", "shard-00002.safetensors", "data-00001.json"}) {
    const std::string sound = checkpoint.read(name);
    for (size_t i = 0; i < sound.size(); ++i) {
      std::string changed = sound;
      changed[i] = static_cast<char>(changed[i] ^ 1 << i % 8);
      checkpoint.write(name, changed);
      ASSERT_FALSE(thoroughly(checkpoint.path).damage.empty()) << name << ", byte " << i;
    }
    checkpoint.write(name, sound);
  }
}

TEST(Inspection, FindsAStepInTheFolderOfAnother) {
  const TestCheckpoint checkpoint;
  std::filesystem::rename(checkpoint.path, checkpoint.folder.path() / "step-11");
  const Inspection inspection = quickly(checkpoint.folder.path() / "step-11");
  ASSERT_EQ(inspection.damage.size(), 1u);
  EXPECT_TRUE(holds(inspection.damage[0], "is of step 10, but its folder is named for step 11"));
  EXPECT_EQ(inspection.files.size(), 2u) << "the content of the headers is shown";
  EXPECT_EQ(quickly(checkpoint.folder.path()).damage, inspection.damage);
}

TEST(Inspection, SaysThatAnOlderManifestCarriesNoHash) {
  const TestCheckpoint checkpoint;
  EXPECT_TRUE(notes_of(thoroughly(checkpoint.path)).empty());
  Value value = parse_json(checkpoint.read("manifest.json"));
  value["version"] = 1;
  std::erase_if(value.as_map(), [](const auto& member) { return member.first == "xxh3_128"; });
  checkpoint.write("manifest.json", to_json(value));
  const Inspection inspection = thoroughly(checkpoint.path);
  EXPECT_TRUE(inspection.damage.empty());
  EXPECT_TRUE(holds(text_of(inspection), "its manifest carries no hash of its own"));
  EXPECT_TRUE(holds(to_json(to_value(inspection, TensorList::left_out).at("notes")),
                    "its manifest carries no hash of its own"));
}

TEST(Inspection, NamesUnlistedFilesAndDoesNotCountThem) {
  const TestCheckpoint checkpoint;
  const int64_t bytes = quickly(checkpoint.folder.path()).steps.at(0).bytes;
  const std::string files = text_of(quickly(checkpoint.path));
  checkpoint.write("notes.txt", "not of this checkpoint");
  checkpoint.write("more.safetensors", checkpoint.read("shard-00001.safetensors"));
  checkpoint.folder.write("step-10/old/manifest.json", "{}");
  const std::string note =
      "3 unlisted files, which its manifest does not name, are not counted: more.safetensors, "
      "notes.txt, "
      "old/";
  Inspection inspection = quickly(checkpoint.path);
  EXPECT_TRUE(inspection.damage.empty());
  EXPECT_EQ(notes_of(inspection), std::vector<std::string>{note});
  std::string text = text_of(inspection);
  text.erase(text.find("  " + note + "\n"), note.size() + 3);
  EXPECT_EQ(text, files);
  EXPECT_EQ(to_json(to_value(inspection, TensorList::left_out).at("strays")),
            R"(["more.safetensors","notes.txt","old/"])");
  inspection = quickly(checkpoint.folder.path());
  EXPECT_EQ(inspection.steps.at(0).bytes, bytes);
  EXPECT_TRUE(holds(text_of(inspection), "  step-10: " + note + "\n"));
  EXPECT_EQ(
      to_value(inspection, TensorList::left_out).at("steps").as_list()[0].at("strays").as_list(),
      (Value::List{"more.safetensors", "notes.txt", "old/"}));
}

TEST(Inspection, CountsInAHuggingFaceFolderWhatIsLoaded) {
  const TestFolder folder;
  folder.write("step-3/config.json", "{}");
  folder.write("step-3/model.safetensors", shard_file({{"a", "F32", {4}}}, false));
  const Inspection alone = quickly(folder.path() / "step-3");
  const int64_t bytes = quickly(folder.path()).steps.at(0).bytes;
  folder.write("step-3/consolidated.safetensors", shard_file({{"a", "F32", {4}}}, false));
  folder.write("step-3/sharded/weights-rank-00000.safetensors", "half of it");
  const Inspection inspection = quickly(folder.path() / "step-3");
  EXPECT_TRUE(inspection.damage.empty());
  EXPECT_EQ(inspection.files.size(), alone.files.size());
  EXPECT_EQ(inspection.unlisted,
            (std::vector<std::string>{"consolidated.safetensors", "sharded/"}));
  EXPECT_EQ(quickly(folder.path()).steps.at(0).bytes, bytes);
}

TEST(Inspection, TellsProgramsWhatIsMissing) {
  const TestCheckpoint checkpoint;
  std::filesystem::remove(checkpoint.path / "data-00001.json");
  const Inspection inspection = quickly(checkpoint.path);
  EXPECT_TRUE(holds(text_of(inspection), "0  missing"));
  const Value value = to_value(inspection, TensorList::left_out);
  EXPECT_TRUE(value.at("lists_its_files").as_boolean());
  EXPECT_EQ(value.at("files").as_list().at(2).at("is_missing"), Value(true));
  EXPECT_EQ(value.at("files").as_list().at(0).at("is_missing"), Value(false));

  const TestFolder folder;
  folder.write("a.safetensors", shard_file({{"a", "F32", {4}}}, false));
  const Value bare = to_value(quickly(folder.path()), TensorList::left_out);
  EXPECT_FALSE(bare.at("lists_its_files").as_boolean());
  EXPECT_TRUE(holds(to_json(bare.at("notes")), "it is unknown whether all files are present"));
}

TEST(Inspection, IsWhatTheCommandExitsWith) {
  const TestCheckpoint checkpoint;
  const std::string path = checkpoint.path.string();
  const auto inspect = [](const std::vector<std::string>& arguments) {
    return core::run_plugin_command("inspect", arguments, nullptr, {}).value();
  };
  const auto run = [&](const std::vector<std::string>& arguments, std::string& out) {
    ::testing::internal::CaptureStdout();
    const int code = inspect(arguments);
    out = ::testing::internal::GetCapturedStdout();
    return code;
  };
  std::string out;
  EXPECT_EQ(run({path, "--verify"}, out), kExitDone);
  EXPECT_TRUE(holds(out, "read 1,234 bytes in "));
  EXPECT_TRUE(holds(out, ": every hash agrees\n"));
  checkpoint.write("data-00001.json", "{\"rows\": [1}");
  EXPECT_EQ(run({path}, out), kExitDone);
  EXPECT_EQ(run({path, "--verify"}, out), kExitRuntimeError);
  EXPECT_TRUE(holds(out, "\ndamaged: " + path + "/data-00001.json: its content was changed\n"));
  EXPECT_EQ(run({path, "--verify", "--json"}, out), kExitRuntimeError);
  EXPECT_EQ(parse_json(out).at("damage").as_list().size(), 1u);
  EXPECT_EQ(run({checkpoint.folder.path().string()}, out), kExitDone);
  EXPECT_TRUE(holds(out, "newest complete"));
  EXPECT_EQ(error_of([&] { inspect({}); }).kind(), ErrorKind::config);
  EXPECT_EQ(error_of([&] { inspect({path, "--all"}); }).kind(), ErrorKind::config);
}

TEST(Inspection, ListsTheStepsOfAFolder) {
  const TestCheckpoint checkpoint;
  checkpoint.folder.write("step-9/.metadata", "");
  checkpoint.folder.write("step-20/sharded/model.safetensors", std::string(2048, ' '));
  checkpoint.folder.write("step-5/model.safetensors", "");
  const Inspection inspection = quickly(checkpoint.folder.path());
  EXPECT_TRUE(inspection.damage.empty());
  EXPECT_EQ(text_of(inspection), R"(step  format          contents     size
   5  hugging face    -             0 B
   9  torch, pickled  -             0 B
  10  titan           training  2.1 KiB  newest complete
  20  incomplete      -         2.0 KiB
)");
  const Value value = to_value(inspection, TensorList::left_out);
  EXPECT_TRUE(value.at("steps").as_list()[2].at("is_newest").as_boolean());
  EXPECT_EQ(value.at("steps").as_list()[3].at("format").as_string(), "incomplete");

  checkpoint.write("manifest.json", "{");
  ASSERT_EQ(quickly(checkpoint.folder.path()).damage.size(), 1u);
  EXPECT_TRUE(holds(quickly(checkpoint.folder.path()).damage[0], "manifest.json: malformed JSON"));
}

TEST(Inspection, ShowsFoldersOfSafetensors) {
  const TestFolder folder;
  folder.write("model-00001-of-00002.safetensors",
               shard_file({{"a", "BF16", {4, 2}}, {"b", "BF16", {4}}}, false));
  folder.write("model-00002-of-00002.safetensors", shard_file({{"c", "BF16", {2}}}, false));
  Value map = Value::map({{"a", "model-00001-of-00002.safetensors"},
                          {"b", "model-00001-of-00002.safetensors"},
                          {"c", "model-00002-of-00002.safetensors"}});
  folder.write(kIndexName, to_json(Value::map({{"weight_map", map}})));
  EXPECT_TRUE(quickly(folder.path()).damage.empty());
  const std::string text = text_of(thoroughly(folder.path()));
  EXPECT_TRUE(holds(text, "weights  BF16        3        14     28  28 B\n"));
  EXPECT_TRUE(holds(text, ": every hash agrees\n"));

  map["d"] = "model-00002-of-00002.safetensors";
  map["e"] = "model-00003-of-00003.safetensors";
  map["f"] = 3;
  folder.write(kIndexName, to_json(Value::map({{"weight_map", map}})));
  const auto damage = quickly(folder.path()).damage;
  ASSERT_EQ(damage.size(), 4u);
  EXPECT_TRUE(holds(damage[0], "tensor 'f' is in no file"));
  EXPECT_TRUE(holds(damage[1], "model-00002-of-00002.safetensors: tensor 'd' is missing"));
  EXPECT_TRUE(
      holds(damage[2], "model-00003-of-00003.safetensors: the file is missing, with 1 tensors"));
  folder.write(kIndexName, "{}");
  EXPECT_TRUE(holds(quickly(folder.path()).damage.at(0), "it has no weight_map"));
  folder.write(kIndexName, "{");
  EXPECT_TRUE(holds(quickly(folder.path()).damage.at(0), "malformed JSON"));
}

TEST(Inspection, ShowsWhatIsSoundBesideADamagedFile) {
  const TestFolder folder;
  std::string content = shard_file({{"a", "F32", {4}}}, false);
  folder.write("a.safetensors", content);
  folder.write("b.safetensors", "short");
  Inspection inspection = thoroughly(folder.path());
  ASSERT_EQ(inspection.damage.size(), 1u);
  EXPECT_TRUE(holds(inspection.damage[0], folder.at("b.safetensors")));
  EXPECT_TRUE(inspection.tensors.tensors.contains("a"));
  EXPECT_TRUE(holds(text_of(inspection), "it is unknown whether all files are present"));
  content.back() ^= 1;
  inspection = thoroughly(folder.write("a.safetensors", content));
  ASSERT_EQ(inspection.damage.size(), 1u);
  EXPECT_EQ(inspection.damage[0], folder.at("a.safetensors") + ": tensor 'a' was changed");

  std::vector<TensorEntry> tensors{{"v", "F32", {2}}};
  lay_out(tensors);
  const std::string path = folder.write("c.safetensors", header_bytes(tensors, {}) + pattern(8));
  EXPECT_TRUE(holds(text_of(thoroughly(path)), "1 tensors have no recorded hash"));
}

TEST(Inspection, SaysWhyThereIsNothingToShow) {
  const TestFolder folder;
  const auto message = [](const std::filesystem::path& path) {
    const Error error = error_of([&] { quickly(path); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.message();
  };
  EXPECT_TRUE(holds(message(folder.path() / "none"), "no such file or folder"));
  EXPECT_TRUE(holds(message(folder.write("a.txt", "")), "it is a file, but not a *.safetensors"));
  EXPECT_TRUE(holds(message(folder.path()), "it has neither manifest.json nor *.safetensors"));
  folder.write("dcp/.metadata", "");
  EXPECT_TRUE(holds(message(folder.path() / "dcp"), "torch's pickled format"));
  folder.write("run/checkpoint/step-1/x", "");
  EXPECT_TRUE(holds(message(folder.path() / "run"),
                    "its folder " + folder.at("run/checkpoint") + " has some"));
}

}  // namespace
}  // namespace titan::commands
