// Huge pages, as the kernel reports them: the flag "hg" in /proc/self/smaps.
#include "core/runtime/tensors/huge_pages.h"

#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <titan/error.h>

namespace titan::core {
namespace {

/// Whether the mapping of `address` requests huge pages.
bool asks_for_huge_pages(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= wanted && wanted < end;
    if (is_here && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
  }
  ADD_FAILURE() << "no mapping holds " << address;
  return false;
}

/// Memory that has not been used before.
at::Tensor mebibytes(int64_t count) {
  const auto bytes = static_cast<size_t>(count) << 20;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TITAN_ASSERT(memory != MAP_FAILED, "no memory for a test");
  return at::from_blob(
      memory, {count << 18}, [bytes](void* here) { ::munmap(here, bytes); }, at::kFloat);
}

TEST(HugePages, AreAskedForWhereLargeTensorsLie) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  ASSERT_TRUE(setting.good()) << "this system has no large pages";
  const at::Tensor a = mebibytes(8), other = mebibytes(8);
  const auto middle = [](const at::Tensor& x) { return x.const_data_ptr<float>() + x.numel() / 2; };
  ASSERT_FALSE(asks_for_huge_pages(middle(a)));
  prefer_huge_pages({a});
  EXPECT_TRUE(asks_for_huge_pages(middle(a)));
  EXPECT_FALSE(asks_for_huge_pages(middle(other)));
}

/// Matrices smaller than a huge page are placed together in one.
TEST(HugePages, NeighboursCountAsOne) {
  std::vector<at::Tensor> parts;
  const at::Tensor whole = mebibytes(8);
  for (int64_t i = 0; i < 16; ++i) parts.push_back(whole.narrow(0, i << 17, (1 << 17) - 1000));
  prefer_huge_pages(parts);
  EXPECT_TRUE(asks_for_huge_pages(whole.const_data_ptr<float>() + whole.numel() / 2));
}

TEST(HugePages, PassOverWhatHasNoSuchMemory) {
  const at::Tensor small = at::ones({3}), empty = at::empty({0});
  const at::Tensor meta = at::empty({1 << 20}, at::TensorOptions().device(at::kMeta));
  prefer_huge_pages({small, empty, meta});
  EXPECT_EQ(small[2].item<float>(), 1);
}

}  // namespace
}  // namespace titan::core
