// Files of weights: planning, writing, recognising finished files and detecting damage.
#include "core/exchange/weight_file.h"

#include <gtest/gtest.h>

#include <ATen/ops/randn.h>

#include <titan/files/file.h>

#include "core/exchange/conversion.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::same_bytes;
using testing::TestFolder;
using testing::write_stored;
namespace fs = std::filesystem;

/// Three tensors of 400, 4000 and 400 bytes.
class WeightFile : public ::testing::Test {
 protected:
  WeightFile() : out_(folder_.path() / "out") {
    source_ = index_files(
        {write_stored(folder_, "in/model.safetensors", {{"a", a_}, {"b", b_}, {"c", c_}})});
  }

  std::vector<PlannedFile> plan(FileStyle style, int64_t max_bytes = 4400,
                                const std::string& dtype = "F32") const {
    std::vector<PlannedTensor> tensors;
    for (const auto& [name, tensor] : {std::pair{"a", &a_}, {"b", &b_}, {"c", &c_}})
      tensors.push_back({.entry = {.name = std::string("our.") + name,
                                   .dtype = dtype,
                                   .shape = tensor->sizes().vec()},
                         .source = name});
    return plan_weight_files(tensors, style, max_bytes);
  }

  Conversion conversion(std::vector<PlannedFile> files) {
    return {.out = out_,
            .source = &source_,
            .files = std::move(files),
            .identity = Value::map({{"what", "a test"}}),
            .other_files = {"last.json"},
            .finish = [this](const auto&) { write_text_atomically(out_ / "last.json", "{}"); }};
  }

  /// The outcomes by file.
  std::vector<FileOutcome> run(const Conversion& conversion, ConversionResult* result = nullptr) {
    std::vector<FileOutcome> outcomes;
    const ConversionResult done = run_conversion(
        conversion, [&](const auto&, FileOutcome outcome, double) { outcomes.push_back(outcome); });
    if (result) *result = done;
    return outcomes;
  }

  at::Tensor a_ = at::randn({10, 10}), b_ = at::randn({100, 10}), c_ = at::randn({100});
  TestFolder folder_;
  fs::path out_;
  TensorIndex source_;
};

using Outcomes = std::vector<FileOutcome>;

TEST_F(WeightFile, FillsFilesUpToTheirLimit) {
  const auto two = plan(FileStyle::hugging_face);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "model-00001-of-00002.safetensors");
  EXPECT_EQ(two[0].tensors.size(), 2u);
  EXPECT_EQ(plan(FileStyle::hugging_face, 10).size(), 3u);  // each exceeds a file's limit
  EXPECT_EQ(plan(FileStyle::hugging_face, 5000)[0].name, "model.safetensors");
  EXPECT_EQ(plan(FileStyle::checkpoint, 5000)[0].name, "weights-rank-00000.safetensors");
  EXPECT_EQ(plan(FileStyle::checkpoint)[1].name, "weights-rank-00000-02.safetensors");
}

TEST_F(WeightFile, IsWrittenAsPlanned) {
  fs::create_directories(out_);
  for (const FileStyle style : {FileStyle::hugging_face, FileStyle::checkpoint}) {
    for (const PlannedFile& file : plan(style)) {
      const ManifestFile written = write_weight_file(source_, file, out_);
      const std::string content = folder_.read("out/" + file.name);
      EXPECT_EQ(written.bytes, static_cast<int64_t>(content.size()));
      EXPECT_EQ(written.bytes, file.bytes);
      EXPECT_EQ(written.hash, hash_hex(content));
      const SafetensorsHeader header = read_header(out_ / file.name);
      EXPECT_EQ(written.header_hash, hash_hex(content.substr(0, header.data_start)));
      EXPECT_TRUE(has_planned_header(file, out_));
      EXPECT_EQ(read_back(file, out_).hash, written.hash);
      compare_with_source(source_, file, out_);
      EXPECT_FALSE(fs::exists(out_ / (file.name + ".tmp")));
      for (const auto& [name, tensor] : {std::pair{"our.a", &a_}, {"our.b", &b_}, {"our.c", &c_}})
        if (header.find(name)) {
          EXPECT_TRUE(same_bytes(testing::read_stored(out_ / file.name, name), *tensor)) << name;
        }
      if (style == FileStyle::checkpoint) {
        const TensorIndex index = index_files({out_ / file.name});
        for (const auto& [name, tensor] : index.tensors)
          EXPECT_EQ(tensor.pieces.front().hash.size(), 32u);
      }
    }
  }
}

TEST_F(WeightFile, IsRecognisedByItsHeaderAlone) {
  fs::create_directories(out_);
  const PlannedFile file = plan(FileStyle::hugging_face)[0];
  EXPECT_FALSE(has_planned_header(file, out_));
  write_weight_file(source_, file, out_);
  EXPECT_FALSE(has_planned_header(plan(FileStyle::hugging_face, 4400, "BF16")[0], out_));
  PlannedFile as_checkpoint = plan(FileStyle::checkpoint)[0];
  as_checkpoint.name = file.name;
  EXPECT_FALSE(has_planned_header(as_checkpoint, out_));
  std::string content = folder_.read("out/" + file.name);
  content.pop_back();
  folder_.write("out/" + file.name, content);
  EXPECT_FALSE(has_planned_header(file, out_));
}

TEST_F(WeightFile, ShowsDamageByTensor) {
  fs::create_directories(out_);
  const PlannedFile file = plan(FileStyle::checkpoint, 5000)[0];
  write_weight_file(source_, file, out_);
  std::string content = folder_.read("out/" + file.name);
  content[content.size() - 1] ^= 1;  // of our.c, the last tensor by name
  folder_.write("out/" + file.name, content);
  EXPECT_TRUE(holds(error_of([&] { read_back(file, out_); }).what(), "tensor our.c is damaged"));
  EXPECT_TRUE(holds(error_of([&] { compare_with_source(source_, file, out_); }).what(),
                    "tensor our.c differs from its source"));
}

TEST_F(WeightFile, LeavesNothingBehindWhenItCannotBeMade) {
  fs::create_directories(out_);
  fs::resize_file(folder_.at("in/model.safetensors"), 600);
  const Error error =
      error_of([&] { write_weight_file(source_, plan(FileStyle::checkpoint)[0], out_); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(WeightFile, ConversionGoesOnWhereItStopped) {
  Conversion interrupted = conversion(plan(FileStyle::checkpoint));
  int files = 0;
  EXPECT_THROW(run_conversion(interrupted,
                              [&](const auto&, FileOutcome, double) {
                                if (++files == 1) throw Error(ErrorKind::io, "stopped");
                              }),
               Error);
  EXPECT_TRUE(fs::exists(out_ / kConversionRecordName));
  folder_.write("out/weights-rank-00000-02.safetensors.tmp", "half a file");
  folder_.write("out/.last.json.17.tmp", "half a file");

  ConversionResult result;
  EXPECT_EQ(run(interrupted, &result), (Outcomes{FileOutcome::kept, FileOutcome::written}));
  EXPECT_EQ(result.bytes_written, interrupted.files[1].bytes);
  EXPECT_FALSE(result.was_complete);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(out_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"last.json", "weights-rank-00000-01.safetensors",
                                             "weights-rank-00000-02.safetensors"}));

  EXPECT_EQ(run(interrupted, &result), (Outcomes{FileOutcome::compared, FileOutcome::compared}));
  EXPECT_TRUE(result.was_complete);
}

TEST_F(WeightFile, ConversionRefusesAFolderWithSomethingElse) {
  const auto refused = [&](const Conversion& changed) {
    const Error error = error_of([&] { run(changed); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  folder_.write("out/notes.txt", "mine");
  EXPECT_TRUE(holds(refused(conversion(plan(FileStyle::checkpoint))), "holds notes.txt"));
  fs::remove(out_ / "notes.txt");

  folder_.write("out/last.json", "{}");
  EXPECT_TRUE(holds(refused(conversion(plan(FileStyle::checkpoint))),
                    "holds last.json and no record of an unfinished conversion"));
  fs::remove(out_ / "last.json");

  run(conversion(plan(FileStyle::checkpoint)));
  EXPECT_TRUE(holds(refused(conversion(plan(FileStyle::checkpoint, 2200, "BF16"))),
                    "holds other tensors than this conversion makes"));
  fs::remove_all(out_);

  Conversion other = conversion(plan(FileStyle::checkpoint));
  other.finish = [](const auto&) { throw Error(ErrorKind::io, "stopped"); };
  EXPECT_THROW(run(other), Error);
  other.identity = Value::map({{"what", "another"}});
  EXPECT_TRUE(holds(refused(other), "holds an unfinished conversion of another source"));
}

TEST_F(WeightFile, ConversionFindsThatAFinishedFolderIsOfAnotherSource) {
  Conversion first = conversion(plan(FileStyle::hugging_face));
  first.verify = true;
  EXPECT_EQ(run(first), (Outcomes{FileOutcome::written, FileOutcome::written, FileOutcome::compared,
                                  FileOutcome::compared}));
  const TensorIndex trained_on = index_files(
      {write_stored(folder_, "later/model.safetensors", {{"a", a_}, {"b", b_ * 1.01}, {"c", c_}})});
  Conversion second = conversion(plan(FileStyle::hugging_face));
  second.source = &trained_on;
  EXPECT_TRUE(holds(error_of([&] { run(second); }).what(), "tensor our.b differs from its source"));
}

}  // namespace
}  // namespace titan::core
