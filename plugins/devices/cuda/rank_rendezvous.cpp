#include "rank_rendezvous.h"

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <titan/error.h>

namespace titan::cuda {
namespace {

/// Most missing ranks that an error names.
constexpr int kMostNamed = 8;

std::vector<uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

/// "2, 5, 7 and 3 more": the ranks that have not announced themselves.
std::string absent_ranks(c10d::Store& store, int size) {
  std::string names;
  int num_named = 0, num_more = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (store.check({"rank" + std::to_string(rank)})) continue;
    if (num_named == kMostNamed)
      ++num_more;
    else
      names += (num_named++ ? ", " : "") + std::to_string(rank);
  }
  return num_more ? names + " and " + std::to_string(num_more) + " more" : names;
}

}  // namespace

void await_all_ranks(c10d::Store& store, const dist::Endpoint& endpoint, const std::string& gpu) {
  const std::string self = std::to_string(endpoint.rank);
  const std::vector<uint8_t> owner = store.compareSet("gpu " + gpu, bytes(""), bytes(self));
  const std::string owner_rank(owner.begin(), owner.end());
  TITAN_CHECK(owner_rank == self, distributed, "ranks ", owner_rank, " and ", self, " of group '",
              endpoint.name, "' share one GPU (", gpu,
              "): start at most as many ranks on a machine as it has GPUs, and check "
              "CUDA_VISIBLE_DEVICES");
  store.set("rank" + self, bytes("here"));
  if (store.add("arrived", 1) == endpoint.size) store.set("all", bytes("here"));
  try {
    store.wait({"all"}, endpoint.timeout);
  } catch (const std::exception&) {
    const std::string absent = absent_ranks(store, endpoint.size);
    if (absent.empty()) throw;
    fail(ErrorKind::distributed, "rank ", self, " of ", endpoint.size, " waited ",
         std::chrono::duration<double>(endpoint.timeout).count(), " s to connect group '",
         endpoint.name, "' over nccl; missing ranks: ", absent);
  }
}

}  // namespace titan::cuda
