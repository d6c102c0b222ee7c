// Loads under one parallel layout a state that was saved under another, with real process groups
// and real files.
#include <filesystem>
#include <mutex>
#include <numeric>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/checkpoints/tensor_index.h>
#include <titan/error.h>

#include "core/checkpoint/reader.h"
#include "core/checkpoint/shard_plan.h"
#include "core/checkpoint/writer.h"
#include "tests/sdk/dist/thread_ranks.h"
#include "tests/sdk/nn/slices.h"

namespace titan::core {
namespace {

using dist::Mesh;
using dist::MeshShape;

/// How one tensor of the state is sharded.
struct LayoutCut {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::pair<int64_t, std::string>> dims;  // dimension, mesh axis
};

// odd shapes that do not divide evenly, a matrix sharded along both dimensions, and a replicated
// tensor
const std::vector<LayoutCut> kState = {{"embedding", {13, 6}, {{0, "tp"}, {0, "fsdp"}}},
                                       {"column", {10, 7}, {{0, "tp"}, {0, "fsdp"}}},
                                       {"row", {7, 10}, {{1, "tp"}, {0, "fsdp"}}},
                                       {"norm", {5}, {{0, "fsdp"}}},
                                       {"replica", {3, 4}, {}},
                                       {"short", {2}, {{0, "fsdp"}}}};

class CheckpointLayouts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(TITAN_TEST_BUILD_DIR) / "layouts" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  static at::Tensor whole(const LayoutCut& cut) {
    int64_t n = 1;
    for (const int64_t size : cut.shape) n *= size;
    return (at::arange(n, at::kFloat) + 1000.0 * static_cast<double>(cut.name.size()))
        .view(cut.shape);
  }

  static std::vector<int64_t> shape_of_whole_state(const std::string& name) {
    return name.size() % 2 == 0 ? std::vector<int64_t>{1} : std::vector<int64_t>{2, 3};
  }

  /// This rank's shard of the state, with the true values or with -1, and one whole state per
  /// tensor: a number, or a matrix.
  static std::vector<StateTensor> state_of(const Mesh& mesh, bool has_values) {
    std::vector<StateTensor> state;
    for (const LayoutCut& cut : kState) {
      nn::Parameter parameter(cut.shape, nn::Init::constant(0));
      for (const auto& [dim, axis] : cut.dims)
        if (mesh.group(axis).size() > 1) parameter.shard_over(dim, mesh.group(axis));
      at::Tensor values = titan::testing::slice_of(whole(cut), parameter.slice()).contiguous();
      // a rank without elements has a wrong whole state, and must not be the rank that writes it
      const bool knows = parameter.slice().num_elements() > 0;
      const std::vector<int64_t> own_shape = shape_of_whole_state(cut.name);
      at::Tensor number =
          at::full(own_shape, knows ? 7.0 + static_cast<double>(cut.name.size()) : -1.0);
      if (!has_values) {
        values = at::full_like(values, -1);
        number = at::full(own_shape, -1.0);
      }
      state.push_back(
          {cut.name, cut.shape, parameter.slice(), values, parameter.shardings(), false});
      state.push_back({"optim.step." + cut.name,
                       own_shape,
                       {std::vector<int64_t>(own_shape.size(), 0), own_shape},
                       number,
                       parameter.shardings(),
                       true});
    }
    return state;
  }

  void save(const MeshShape& shape) {
    titan::testing::run_ranks(shape, [&](const Mesh& mesh) {
      const auto files = plan_files(own_part(state_of(mesh, true), mesh.grid(), mesh.rank()),
                                    "weights", mesh.rank(), {}, /*max_bytes=*/300);
      write_shards(folder_, files, 2);
    });
  }

  /// Bytes read and received by all ranks together.
  LoadStats load(const MeshShape& shape) {
    const TensorIndex index = index_files(safetensors_files(folder_));
    LoadStats total;
    std::mutex mutex;
    titan::testing::run_ranks(shape, [&](const Mesh& mesh) {
      const std::vector<StateTensor> state = state_of(mesh, false);
      const std::vector<StateTensor> expected = state_of(mesh, true);
      const auto same = [](const std::string& name) { return name; };
      check_fits(index, state, "it");
      const LoadStats stats = load_tensors(index, state, same, mesh.group("world"), c10::kCPU);
      const std::lock_guard lock(mutex);
      for (size_t i = 0; i < state.size(); ++i) {
        if (state[i].is_whole) {
          const at::Tensor right =
              at::full_like(state[i].tensor, 7.0 + static_cast<double>(state[i].name.size() - 11));
          EXPECT_TRUE(at::equal(state[i].tensor, right)) << state[i].name;
          continue;
        }
        EXPECT_TRUE(at::equal(state[i].tensor, expected[i].tensor))
            << state[i].name << " on rank " << mesh.rank();
      }
      total.bytes_read += stats.bytes_read;
      total.bytes_received += stats.bytes_received;
    });
    return total;
  }

  /// Bytes of tensor data in all files, without headers.
  int64_t stored_bytes() const {
    int64_t bytes = 0;
    for (const auto& [name, tensor] : index_files(safetensors_files(folder_)).tensors)
      for (const StoredPiece& piece : tensor.pieces) bytes += piece.bytes;
    return bytes;
  }

  static int64_t state_bytes() {
    int64_t bytes = 0;
    for (const LayoutCut& cut : kState)
      bytes += static_cast<int64_t>(whole(cut).nbytes()) +
               4 * c10::multiply_integers(shape_of_whole_state(cut.name));
    return bytes;
  }

  std::filesystem::path folder_;
};

const MeshShape kOne{};
const MeshShape kDdp4{.dp_replicate = 4};
const MeshShape kDdp2Tp2{.dp_replicate = 2, .tp = 2};
const MeshShape kFsdp3{.dp_shard = 3};
const MeshShape kFsdp4{.dp_shard = 4};
const MeshShape kHsdp{.dp_replicate = 2, .dp_shard = 2};
const MeshShape kFsdp2Tp2{.dp_shard = 2, .tp = 2};

TEST_F(CheckpointLayouts, EachElementIsWrittenOnceUnderEveryLayout) {
  for (const MeshShape& shape : {kOne, kDdp4, kDdp2Tp2, kFsdp3, kFsdp4, kHsdp, kFsdp2Tp2}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    save(shape);
    EXPECT_EQ(stored_bytes(), state_bytes());
  }
}

TEST_F(CheckpointLayouts, DataParallelToTensorParallelToOneToUnevenShards) {
  save(kDdp4);
  EXPECT_EQ(load(kDdp2Tp2).bytes_read, state_bytes());
  EXPECT_EQ(load(kOne).bytes_read, state_bytes());
  EXPECT_EQ(load(kFsdp3).bytes_read, state_bytes());
}

TEST_F(CheckpointLayouts, EveryLayoutReadsEveryOther) {
  const std::vector<MeshShape> shapes = {kOne, kFsdp3, kFsdp4, kHsdp, kFsdp2Tp2, kDdp2Tp2};
  for (const MeshShape& from : shapes) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    save(from);
    for (const MeshShape& to : shapes) EXPECT_EQ(load(to).bytes_read, state_bytes());
  }
}

TEST_F(CheckpointLayouts, FourRanksReadEachByteOfOneRanksCheckpointOnce) {
  save(kOne);
  const LoadStats stats = load(kFsdp4);
  EXPECT_EQ(stats.bytes_read, state_bytes());
  EXPECT_GT(stats.bytes_received, state_bytes() / 2);
}

TEST_F(CheckpointLayouts, TheSameLayoutSendsNothingButReplicas) {
  save(kFsdp4);
  int64_t replicated = 0;  // held by all four ranks: the replicated tensor and the whole states
  for (const LayoutCut& cut : kState)
    replicated += 4 * c10::multiply_integers(shape_of_whole_state(cut.name)) +
                  (cut.dims.empty() ? static_cast<int64_t>(whole(cut).nbytes()) : 0);
  EXPECT_EQ(load(kFsdp4).bytes_received, 3 * replicated);
}

TEST_F(CheckpointLayouts, AFlippedByteNamesFileAndTensorOnEveryLayout) {
  save(kFsdp3);
  const TensorIndex index = index_files(safetensors_files(folder_));
  const StoredPiece& piece = index.tensors.find("column")->second.pieces.at(1);
  const std::filesystem::path file = index.files[static_cast<size_t>(piece.file)];
  std::FILE* out = std::fopen(file.c_str(), "r+b");
  std::fseek(out, piece.position + 5, SEEK_SET);
  std::fputc(0x5a, out);
  std::fclose(out);
  for (const MeshShape& shape : {kOne, kFsdp3, kFsdp4}) try {
      load(shape);
      FAIL() << "the damage was not detected";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data) << e.what();
      if (std::string(e.what()).find("other ranks found") != std::string::npos) continue;
      EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("tensor 'column'"),
                                             ::testing::HasSubstr(file.filename().string()),
                                             ::testing::HasSubstr("is damaged")));
    }
}

TEST_F(CheckpointLayouts, ReplicasShareTheWork) {
  save(kDdp4);
  std::vector<int64_t> bytes(4, 0);
  const TensorIndex index = index_files(safetensors_files(folder_));
  for (const auto& [name, tensor] : index.tensors)
    for (const StoredPiece& piece : tensor.pieces) {
      const std::string file = index.files[static_cast<size_t>(piece.file)].filename().string();
      bytes.at(static_cast<size_t>(file.at(std::string("weights-rank-0000").size()) - '0')) +=
          piece.bytes;
    }
  for (const int64_t part : bytes) EXPECT_GT(part, 0);
  EXPECT_LT(*std::max_element(bytes.begin(), bytes.end()), state_bytes() / 2);
}

TEST_F(CheckpointLayouts, WhatDoesNotFitIsListedAtOnce) {
  save(kOne);
  const TensorIndex index = index_files(safetensors_files(folder_));
  std::vector<StateTensor> state = state_of(Mesh(), false);
  state[0].shape = {14, 6};
  state[2].name = "other";
  try {
    check_fits(index, state, "the checkpoint");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("2 of 12 tensors"),
                                           ::testing::HasSubstr("'embedding' has shape [13, 6]"),
                                           ::testing::HasSubstr("'other' is missing")));
  }
}

}  // namespace
}  // namespace titan::core
