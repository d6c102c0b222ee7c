#include <titan/named_totals.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

namespace titan {
namespace {

/// "name\0" and three doubles for each.
std::string packed_totals(const NamedTotals& totals) {
  std::string bytes;
  for (const auto& [name, total] : totals) {
    const double numbers[] = {total.sum, total.weight, static_cast<double>(total.how)};
    bytes.append(name.c_str(), name.size() + 1);
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  return bytes;
}

void add_packed(std::string_view bytes, NamedTotals& totals) {
  while (!bytes.empty()) {
    const std::string name(bytes.data());
    double numbers[3];
    std::memcpy(numbers, bytes.data() + name.size() + 1, sizeof numbers);
    bytes.remove_prefix(name.size() + 1 + sizeof numbers);
    totals[name].add({numbers[0], numbers[1], static_cast<Combined>(numbers[2])});
  }
}

}  // namespace

void NamedTotal::add(const NamedTotal& other) {
  const bool is_first = weight == 0;
  how = other.how;
  weight += other.weight;
  if (how != Combined::greatest)
    sum += other.sum;
  else if (is_first || !(sum >= other.sum))  // NaN stays
    sum = std::isnan(sum) && !is_first ? sum : other.sum;
}

double NamedTotal::value() const {
  switch (how) {
    case Combined::mean:
      return sum / weight;
    case Combined::root_mean:
      return std::sqrt(sum / weight);
    case Combined::root_sum:
      return std::sqrt(sum);
    case Combined::greatest:
      return sum;
  }
  return sum;
}

NamedTotals over_ranks(const NamedTotals& own, const dist::Group& world, c10::Device device) {
  std::string bytes = packed_totals(own);
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t most = world.all_reduce(size, dist::Reduce::max, device);
  if (most == 0) return {};
  const at::Tensor sizes = at::empty({world.size()}, at::TensorOptions(at::kLong).device(device));
  const at::Tensor own_size = at::full({1}, size, sizes.options());
  world.all_gather(sizes, own_size).wait();
  bytes.resize(static_cast<size_t>(most));
  const at::Tensor sent = at::from_blob(bytes.data(), {most}, at::kByte).to(device);
  const at::Tensor received = at::empty({world.size() * most}, sent.options());
  world.all_gather(received, sent.contiguous()).wait();
  const at::Tensor all = received.cpu(), all_sizes = sizes.cpu();
  NamedTotals totals;
  for (int64_t rank = 0; rank < world.size(); ++rank)
    add_packed({reinterpret_cast<const char*>(all.const_data_ptr<uint8_t>()) + rank * most,
                static_cast<size_t>(all_sizes.const_data_ptr<int64_t>()[rank])},
               totals);
  return totals;
}

}  // namespace titan
