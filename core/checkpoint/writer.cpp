#include "core/checkpoint/writer.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>

#include <titan/program/stop_signals.h>
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr int64_t kWriteChunk = int64_t{8} << 20;

std::string numbered(const std::string& stem, int rank, size_t file, size_t num_files) {
  char text[32];
  std::snprintf(text, sizeof text, "-rank-%05d", rank);
  std::string name = stem + text;
  if (num_files > 1) {
    std::snprintf(text, sizeof text, "-%02zu", file + 1);
    name += text;
  }
  return name + ".safetensors";
}

/// On the CPU, in the entry's dtype.
at::Tensor ready(const at::Tensor& tensor, const TensorEntry& entry) {
  return tensor.to(at::TensorOptions().device(c10::kCPU).dtype(scalar_type(entry.dtype)))
      .contiguous();
}

int64_t aligned(int64_t position) {
  return (position + 63) / 64 * 64;
}

/// The size of memory that holds copies of all tensors of `files`.
int64_t staged_bytes(const std::vector<ShardFile>& files) {
  int64_t bytes = 0;
  for (const ShardFile& file : files)
    for (const TensorEntry& entry : file.entries) bytes = aligned(bytes) + entry.end - entry.begin;
  return bytes;
}

}  // namespace

std::vector<ShardFile> plan_files(const std::vector<StateTensor>& state, const std::string& stem,
                                  int rank, std::optional<at::ScalarType> dtype,
                                  int64_t max_bytes) {
  std::vector<ShardFile> files;
  std::vector<std::map<std::string, at::Tensor>> sources;
  for (const StateTensor& item : state) {
    const bool converts =
        dtype && !item.keeps_dtype && at::isFloatingType(item.tensor.scalar_type());
    TensorEntry entry = {.name = item.name,
                         .dtype = stored_dtype(converts ? *dtype : item.tensor.scalar_type()),
                         .shape = item.slice.sizes};
    const int64_t bytes = num_bytes(entry.dtype, entry.shape, item.name);
    if (files.empty() ||
        (files.back().data_bytes > 0 && files.back().data_bytes + bytes > max_bytes)) {
      files.emplace_back();
      sources.emplace_back();
    }
    ShardFile& file = files.back();
    file.data_bytes += bytes;
    file.offsets[item.name] = item.slice.offsets;
    sources.back()[item.name] = item.tensor;
    file.entries.push_back(std::move(entry));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].name = numbered(stem, rank, i, files.size());
    lay_out(files[i].entries);
    for (const TensorEntry& entry : files[i].entries)
      files[i].tensors.push_back(sources[i].at(entry.name));
  }
  return files;
}

void Staging::allocate(int64_t bytes) {
  if (this->bytes() >= bytes) return;
  memory_ = at::Tensor();  // frees the old memory first
  memory_ = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(pinned_));
}

void Staging::warm_up(const std::vector<ShardFile>& files) {
  allocate(staged_bytes(files));
  if (!pinned_ && memory_.defined()) memory_.zero_();
}

void Staging::copy(std::vector<ShardFile>& files) {
  at::NoGradGuard no_grad;
  if (files.empty()) return;
  // on its own stream, concurrently with the training thread's
  const c10::Device device = files.front().tensors.front().device();
  std::unique_ptr<c10::StreamGuard> own_stream;
  if (!device.is_cpu())
    own_stream = std::make_unique<c10::StreamGuard>(
        c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  allocate(staged_bytes(files));
  int64_t position = 0;
  for (ShardFile& file : files)
    for (size_t i = 0; i < file.entries.size(); ++i) {
      const TensorEntry& entry = file.entries[i];
      const int64_t size = entry.end - entry.begin;
      position = aligned(position);
      at::Tensor copy = memory_.narrow(0, position, size)
                            .view(scalar_type(entry.dtype))
                            .view(file.tensors[i].sizes());
      copy.copy_(file.tensors[i]);
      file.tensors[i] = copy;
      position += size;
    }
}

ManifestFile write_shard(const std::filesystem::path& folder, const ShardFile& file) {
  at::NoGradGuard no_grad;
  std::map<std::string, std::string> hashes;
  // the header contains the tensors' hashes and the file's hash starts with the header, so the
  // tensors are hashed first; conversions are repeated rather than kept in memory
  for (size_t i = 0; i < file.entries.size(); ++i) {
    const at::Tensor tensor = ready(file.tensors[i], file.entries[i]);
    hashes[file.entries[i].name] =
        hash_hex({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  const std::string header = header_bytes(file.entries, shard_metadata(file.offsets, hashes));

  const std::filesystem::path temporary = folder / (file.name + ".tmp");
  Hasher hasher;
  int64_t position = 0;
  const File out = File::create(temporary);
  const auto append = [&](const char* data, int64_t bytes) {
    for (int64_t done = 0; done < bytes; done += kWriteChunk) {
      const int64_t now = std::min(kWriteChunk, bytes - done);
      hasher.update(data + done, now);
      out.write(position, data + done, now);
      position += now;
    }
  };
  append(header.data(), static_cast<int64_t>(header.size()));
  for (size_t i = 0; i < file.entries.size(); ++i) {
    const at::Tensor tensor = ready(file.tensors[i], file.entries[i]);
    append(static_cast<const char*>(tensor.const_data_ptr()),
           static_cast<int64_t>(tensor.nbytes()));
  }
  out.sync();
  rename_file(temporary, folder / file.name);
  return {
      .name = file.name, .bytes = position, .hash = hasher.hex(), .header_hash = hash_hex(header)};
}

std::vector<ManifestFile> write_shards(const std::filesystem::path& folder,
                                       const std::vector<ShardFile>& files, int num_threads) {
  std::vector<ManifestFile> written(files.size());
  std::vector<std::exception_ptr> errors(files.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (size_t i = next++; i < files.size() && !failed; i = next++) {
      try {
        written[i] = write_shard(folder, files[i]);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::min<int>(num_threads, static_cast<int>(files.size())); ++i)
    threads.emplace_back([&work] {
      block_signals();
      work();
    });
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  sync_folder(folder);
  return written;
}

ManifestFile write_part(const std::filesystem::path& folder, const std::string& name,
                        const std::string& text) {
  write_text_atomically(folder / name, text);
  return {.name = name, .bytes = static_cast<int64_t>(text.size()), .hash = hash_hex(text)};
}

}  // namespace titan::core
