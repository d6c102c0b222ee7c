#include "unit.h"

#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <c10/util/accumulate.h>
#include <titan/error.h>
#include <titan/nn/cuts.h>

#include "leaf_storage.h"

namespace titan::fsdp {
namespace {

constexpr int64_t kAlignment = 16;  // bytes that one vector instruction copies

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// For each layer the first layer that it shares a parameter with, directly or through others; its
/// own index if it shares none.
std::vector<size_t> first_relatives(ModelPart& part) {
  std::vector<size_t> first(part.layers().size());
  std::iota(first.begin(), first.end(), size_t{0});
  std::map<nn::Parameter*, size_t> owner;
  for (size_t layer = 0; layer < first.size(); ++layer) {
    part.layers()[layer].module->visit_parameters([&](nn::Parameter& parameter) {
      const auto [met, is_new] = owner.emplace(&parameter, layer);
      const size_t a = first[met->second], b = first[layer];
      if (is_new || a == b) return;
      for (size_t& relative : first)
        if (relative == std::max(a, b)) relative = std::min(a, b);
    });
  }
  return first;
}

/// Names of the groups whose ranks hold the same slice of a parameter. Ranks along which other
/// transforms cut it hold other slices, with gradients of their own.
struct Ranks {
  std::string shards, replicas;
  friend bool operator<(const Ranks& a, const Ranks& b) {
    return std::tie(a.shards, a.replicas) < std::tie(b.shards, b.replicas);
  }
};

Ranks ranks_for(const nn::Parameter& parameter, const dist::Grid& grid) {
  TITAN_CHECK(parameter.shard().is_same(parameter.value()), config, "fsdp cannot shard parameter '",
              parameter.name(), "': another data-parallel transform has taken it; select one");
  const std::vector<std::string> cuts = nn::cut_groups(parameter);
  return {grid.complement("fsdp", cuts), grid.complement("dp_replicate", cuts)};
}

/// The dimension to shard: the rows. For a stack of fewer matrices than ranks it is a dimension of
/// the matrices that is divisible by the ranks, if there is one, so that all ranks hold equal
/// parts.
size_t dimension_to_cut(const std::vector<int64_t>& sizes, int64_t num_ranks) {
  if (sizes.size() < 3 || sizes[0] >= num_ranks || c10::multiply_integers(sizes) == 0) return 0;
  for (size_t dim = 1; dim < sizes.size(); ++dim)
    if (sizes[dim] % num_ranks == 0) return dim;
  return 0;
}

Member make_member(nn::Parameter& parameter, const dist::Group& shards, const Settings& settings) {
  TITAN_CHECK(!parameter.global_shape().empty(), config, "fsdp cannot shard parameter '",
              parameter.name(), "': it is a scalar and has no rows");
  const std::vector<int64_t> sizes = parameter.slice().sizes;
  const int64_t num_ranks = shards.size();
  const size_t dim = dimension_to_cut(sizes, num_ranks);
  const at::IntArrayRef all = sizes;

  Member member{.parameter = &parameter, .wire_dtype = settings.param_dtype};
  if (parameter.gather_transform() && num_ranks > 1)
    member.wire_dtype = parameter.gather_transform()->wire_dtype();
  if (num_ranks > 1) parameter.shard_over(static_cast<int64_t>(dim), shards);
  if (settings.is_offloaded()) parameter.keep_shard_on(c10::kCPU);
  member.leaf =
      make_empty_leaf(sizes, settings.param_dtype, settings.device, !parameter.is_frozen());
  parameter.separate_value(member.leaf);
  member.outer = c10::multiply_integers(all.slice(0, dim));
  member.chunk_rows = (sizes[dim] + num_ranks - 1) / num_ranks;
  member.chunk_elements =
      member.outer * member.chunk_rows * c10::multiply_integers(all.slice(dim + 1));
  member.own_elements = parameter.shard().numel();
  member.wire_bytes =
      member.chunk_elements * static_cast<int64_t>(c10::elementSize(member.wire_dtype));
  return member;
}

/// A chunk starts at a multiple of 16 bytes. The buffer has no gaps if every chunk's size is such a
/// multiple too, as is usual.
void lay_out(Unit& unit) {
  for (Member& member : unit.members) {
    member.wire_offset = round_up(unit.slot_bytes, kAlignment);
    unit.slot_bytes = member.wire_offset + member.wire_bytes;
    if (member.is_frozen()) continue;
    ++unit.num_trainable;
    member.gradient_offset = unit.slot_elements;
    unit.slot_elements += member.chunk_elements;
  }
  unit.slot_bytes = round_up(unit.slot_bytes, kAlignment);
}

}  // namespace

at::Tensor Member::by_rank(const at::Tensor& whole) const {
  const int64_t num_ranks = whole.numel() / chunk_elements;
  return whole.view({outer, num_ranks, chunk_elements / outer}).transpose(0, 1);
}

std::vector<Unit> make_units(ModelPart& part, const Settings& settings) {
  const std::vector<size_t> relatives = first_relatives(part);
  std::map<std::pair<size_t, Ranks>, Unit> by_first_layer;
  std::map<nn::Parameter*, bool> is_taken;
  const auto unit_of = [&](size_t layer, const Ranks& ranks) -> Unit& {
    Unit& unit = by_first_layer[{relatives[layer], ranks}];
    unit.shards = settings.mesh.group(ranks.shards);
    unit.replicas = settings.mesh.group(ranks.replicas);
    if (unit.layers.empty() || unit.layers.back() != layer) unit.layers.push_back(layer);
    return unit;
  };
  for (size_t layer = 0; layer < relatives.size(); ++layer) {
    unit_of(layer, {"fsdp", "dp_replicate"});
    part.layers()[layer].module->visit_parameters([&](nn::Parameter& parameter) {
      if (!parameter.owner().empty() || std::exchange(is_taken[&parameter], true)) return;
      Unit& unit = unit_of(layer, ranks_for(parameter, settings.mesh.grid()));
      unit.members.push_back(make_member(parameter, unit.shards, settings));
    });
  }
  std::vector<Unit> units;
  for (auto& [place, unit] : by_first_layer) {
    lay_out(unit);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace titan::fsdp
