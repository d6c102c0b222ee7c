// titan/checkpoints/checkpoint_folder.h: which steps exist and which are complete.

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/files/file.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

using testing::TestFolder;

TEST(CheckpointFolder, ListsStepsInTheirOrderWithTheirMarkers) {
  const TestFolder folder;
  folder.write("step-10/manifest.json", "{}");
  folder.write("step-10/.metadata", "");
  folder.write("step-9/.metadata", "");
  folder.write("step-100/model.safetensors.index.json", "{}");
  folder.write("step-0/model.safetensors", "");
  folder.write("step-20/shard.safetensors", "");
  folder.write("step-30/manifest.json/not_a_file", "");
  for (const char* name : {"step-", "step-x", "step-1x", "step--1", "xstep-1", "step-1.tmp",
                           "step-99999999999999999999", "Step-1", "step- 1", "step-+1"})
    folder.write(std::string(name) + "/manifest.json", "{}");
  folder.write("step-5", "a file");

  std::string found;
  for (const CheckpointStep& step : list_steps(folder.path())) {
    found += std::to_string(step.step) + ":" + std::to_string(static_cast<int>(step.marker)) + " ";
    EXPECT_EQ(step.path, step_path(folder.path(), step.step));
  }
  EXPECT_EQ(found, "0:2 9:3 10:1 20:0 30:0 100:2 ");
  EXPECT_EQ(step_path("a", 7), std::filesystem::path("a/step-7"));
}

TEST(CheckpointFolder, HasNoStepsWhenItDoesNotExist) {
  const TestFolder folder;
  EXPECT_TRUE(list_steps(folder.path() / "none").empty());
  EXPECT_TRUE(list_steps(folder.path()).empty());
  EXPECT_EQ(marker_of(folder.path() / "none"), Marker::none);
}

TEST(CheckpointFolder, NamesTheFolderThatCannotBeListed) {
  const TestFolder folder;
  const std::string file = folder.write("file", "");
  const Error error = testing::error_of([&] { list_steps(file); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(), "cannot list folder " + file + ": Not a directory");
}

TEST(CheckpointFolder, PutsBackWhatWaitsAsideForASaveThatNeverEnded) {
  const TestFolder folder;
  folder.write("step-1/weights", "half of the new");
  folder.write("replaced-step-1/manifest.json", "old");
  folder.write("step-2/manifest.json", "new");
  folder.write("replaced-step-2/manifest.json", "old");
  folder.write("replaced-step-3/manifest.json", "old");
  folder.write("replaced-notes/manifest.json", "not ours");
  put_back_asides(folder.path());

  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    found.insert(entry.path().filename().string());
  EXPECT_EQ(found, (std::set<std::string>{"step-1", "step-2", "step-3", "replaced-notes"}));
  EXPECT_EQ(read_text(folder.path() / "step-1/manifest.json"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "step-1/weights"));
  EXPECT_EQ(read_text(folder.path() / "step-2/manifest.json"), "new");
  put_back_asides(folder.path() / "none");
}

TEST(CheckpointFolder, ClearsUpAfterExportsThatWereEndedWhenTheyWereComplete) {
  const TestFolder folder;
  folder.write("step-1/model.safetensors", "complete");
  folder.write("step-1/sharded/manifest.json", "{}");
  folder.write("step-2/model.safetensors.index.json", "complete");
  folder.write("step-2/sharded/weights-rank-00001.safetensors", "removed in part");
  folder.write("step-3/sharded/manifest.json", "not exported yet");
  folder.write("step-4/manifest.json", "{}");
  folder.write("step-4/sharded/notes", "somebody's");
  remove_export_folders(folder.path());
  for (int step = 1; step <= 4; ++step)
    EXPECT_EQ(std::filesystem::exists(step_path(folder.path(), step) / "sharded"), step > 2);
  EXPECT_EQ(read_text(folder.path() / "step-1/model.safetensors"), "complete");
  remove_export_folders(folder.path() / "none");
}

}  // namespace
}  // namespace titan
