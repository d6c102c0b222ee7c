// Shared by the probes with tensors: raw files, and the command line.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include <ATen/ops/empty.h>
#include <titan/error.h>
#include <titan/value.h>

namespace titan::probe {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  TITAN_CHECK(file, io, "cannot read '", path.string(), "'");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Reads raw little-endian numbers.
inline at::Tensor read_tensor(const std::filesystem::path& path, at::IntArrayRef shape,
                              at::ScalarType dtype) {
  const std::string bytes = read_text(path);
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(dtype));
  TITAN_CHECK(bytes.size() == tensor.nbytes(), data, "'", path.string(), "' has ", bytes.size(),
              " bytes instead of ", tensor.nbytes());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.mutable_data_ptr()));
  return tensor;
}

inline void write_bytes(const std::filesystem::path& path, const char* data, size_t size) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(data, static_cast<std::streamsize>(size));
  file.close();
  TITAN_CHECK(file, io, "cannot write '", path.string(), "'");
}

/// Writes numbers in the tensor's own dtype.
inline void write_tensor(const std::filesystem::path& path, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  write_bytes(path, static_cast<const char*>(values.const_data_ptr()), values.nbytes());
}

/// PROGRAM --plugins <folder> --job <job.json> --out <folder>: calls `run(plugins, job, out)` and
/// gives the exit code. Without job and folder, it reads lines of a job, a tab and a folder from
/// standard input and answers each with "done", because starting LibTorch takes longer than a small
/// job. The first error ends it.
template <class Run>
int run_job(int argc, char** argv, const Run& run) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  const bool is_given = argc == 7 && flags.count("--job") && flags.count("--out");
  if (!flags.count("--plugins") || !(is_given || argc == 3)) {
    std::cerr << "usage: " << argv[0] << " --plugins <folder> [--job <job.json> --out <folder>]\n";
    return 2;
  }
  const auto run_file = [&](const std::string& job, const std::string& out) {
    run(flags["--plugins"], parse_json(read_text(job)), out);
  };
  try {
    if (is_given) {
      run_file(flags["--job"], flags["--out"]);
      return 0;
    }
    for (std::string job, out; std::getline(std::cin, job, '\t') && std::getline(std::cin, out);) {
      run_file(job, out);
      std::cout << "done" << std::endl;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

}  // namespace titan::probe
