#include "copies.h"

#include <algorithm>
#include <map>
#include <set>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <xxhash.h>

#include "run_bits.h"

namespace titan::replay {
namespace {

int64_t key_of(const nn::Parameter& parameter) {
  uint64_t key = XXH3_64bits(parameter.name().data(), parameter.name().size());
  for (const auto& numbers : {parameter.slice().offsets, parameter.slice().sizes})
    key = XXH3_64bits_withSeed(numbers.data(), numbers.size() * sizeof(int64_t), key);
  return static_cast<int64_t>(key | 1);  // never 0
}

}  // namespace

CopyReport compare_copies(const std::vector<std::vector<CopyHash>>& of_ranks) {
  std::map<int64_t, std::map<int64_t, std::vector<int64_t>>> ranks_by_hash;  // by key
  for (size_t rank = 0; rank < of_ranks.size(); ++rank)
    for (const CopyHash& copy : of_ranks[rank])
      if (copy.key != 0) ranks_by_hash[copy.key][copy.hash].push_back(static_cast<int64_t>(rank));
  CopyReport report;
  std::set<int64_t> minority;
  for (const auto& [key, by_hash] : ranks_by_hash) {
    size_t num_ranks = 0, most = 0;
    for (const auto& [hash, ranks] : by_hash) {
      num_ranks += ranks.size();
      most = std::max(most, ranks.size());
    }
    report.num_copied += num_ranks > 1;
    if (by_hash.size() == 1) continue;
    ++report.num_different;
    report.keys.push_back(key);
    const bool has_majority = 2 * most > num_ranks;
    report.has_tie |= !has_majority;
    for (const auto& [hash, ranks] : by_hash)
      if (!has_majority || ranks.size() < most) minority.insert(ranks.begin(), ranks.end());
  }
  report.minority.assign(minority.begin(), minority.end());
  return report;
}

std::vector<CopyHash> copies_of(const ModelPart& part) {
  std::vector<CopyHash> copies;
  std::vector<at::Tensor> on_device;
  std::vector<size_t> places;
  for (const nn::Parameter* parameter : part.parameters()) {
    const at::Tensor& shard = parameter->shard();
    if (parameter->is_state() || shard.numel() == 0) continue;
    copies.push_back({.key = key_of(*parameter)});
    if (shard.is_cpu()) {
      copies.back().hash = hash_in_memory(shard);
    } else {
      places.push_back(copies.size() - 1);
      on_device.push_back(hash_on_device(shard));
    }
  }
  if (on_device.empty()) return copies;
  const at::Tensor host = at::stack(on_device).cpu();
  for (size_t i = 0; i < places.size(); ++i)
    copies[places[i]].hash = host.const_data_ptr<int64_t>()[i];
  return copies;
}

std::string name_of(const ModelPart& part, int64_t key) {
  for (const nn::Parameter* parameter : part.parameters())
    if (key_of(*parameter) == key) return parameter->name();
  return "";
}

std::vector<std::vector<CopyHash>> gather_copies(const std::vector<CopyHash>& own,
                                                 const dist::Group& world, c10::Device device) {
  const int64_t most =
      world.all_reduce(static_cast<int64_t>(own.size()), dist::Reduce::max, device);
  const at::Tensor mine = at::zeros({1, most, 2}, at::kLong);
  for (size_t i = 0; i < own.size(); ++i) {
    mine.mutable_data_ptr<int64_t>()[2 * i] = own[i].key;
    mine.mutable_data_ptr<int64_t>()[2 * i + 1] = own[i].hash;
  }
  const at::Tensor all =
      at::zeros({world.size(), most, 2}, at::TensorOptions().dtype(at::kLong).device(device));
  world.all_gather(all, mine.to(device)).wait();
  const at::Tensor host = all.cpu();
  const int64_t* numbers = host.const_data_ptr<int64_t>();
  std::vector<std::vector<CopyHash>> of_ranks(static_cast<size_t>(world.size()));
  for (std::vector<CopyHash>& copies : of_ranks)
    for (int64_t i = 0; i < most; ++i, numbers += 2) copies.push_back({numbers[0], numbers[1]});
  return of_ranks;
}

}  // namespace titan::replay
