#include "core/runtime/groups/process_groups.h"

#include <algorithm>

#include <titan/error.h>

namespace titan::core {
namespace {

int place_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

class MetaDevice final : public Device {
 public:
  c10::Device device() const override { return c10::kMeta; }
  std::string description() const override { return "meta device: shapes without memory"; }
  MemoryStats memory() const override { return {}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint&) override {
    fail(ErrorKind::internal, "the meta device connects no ranks");
  }
};

}  // namespace

dist::Mesh connect_mesh(const dist::Grid& grid, const Rendezvous& rendezvous, Device& device,
                        std::shared_ptr<dist::Recorder> recorder) {
  const int rank = rendezvous.launch().rank;
  const auto connect = [&](const std::string& name, const std::vector<int>& ranks) {
    // other groups of the same name have other members
    auto backend = device.connect({.store = rendezvous.store(),
                                   .name = name + "." + std::to_string(ranks.front()),
                                   .rank = place_in(ranks, rank),
                                   .size = static_cast<int>(ranks.size()),
                                   .timeout = rendezvous.timeout(),
                                   .is_one_host = rendezvous.is_one_host()});
    TITAN_CHECK(backend, plugin, "Device::connect of '", device.description(),
                "' returned no backend for the group '", name, "' of ", ranks.size(), " ranks");
    return backend;
  };
  return dist::Mesh(grid, rank, connect, std::move(recorder));
}

dist::Mesh fake_mesh(const dist::Grid& grid, int rank, std::shared_ptr<dist::Recorder> recorder) {
  const auto connect = [&](const std::string&, const std::vector<int>& ranks) {
    return dist::make_fake_backend(place_in(ranks, rank), static_cast<int>(ranks.size()));
  };
  return dist::Mesh(grid, rank, connect, std::move(recorder));
}

std::unique_ptr<Device> make_meta_device() {
  return std::make_unique<MetaDevice>();
}

}  // namespace titan::core
