#include <titan/dist/grid.h>

#include <algorithm>
#include <numeric>

#include <titan/error.h>

namespace titan::dist {
namespace {

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// How many ranks of each cell the innermost `degree` ranks take, from the last cell on; empty if
/// `degree` does not divide into the cells.
std::vector<int64_t> taken_of(const std::vector<int64_t>& sizes, int64_t degree) {
  std::vector<int64_t> taken(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 0 && degree > 1;) {
    if (degree % sizes[i] == 0)
      taken[i] = sizes[i];
    else if (sizes[i] % degree == 0)
      taken[i] = degree;
    else
      return {};
    degree /= taken[i];
  }
  return degree == 1 ? taken : std::vector<int64_t>();
}

std::string possible_degrees(const std::vector<int64_t>& sizes) {
  constexpr size_t kMostShown = 12;
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<int64_t> possible;
  for (int64_t degree = 1; degree <= all; ++degree)
    if (all % degree == 0 && !taken_of(sizes, degree).empty()) possible.push_back(degree);
  std::string text;
  for (size_t i = 0; i < std::min(possible.size(), kMostShown); ++i)
    text += (i ? ", " : "") + std::to_string(possible[i]);
  return text + (possible.size() > kMostShown ? ", ..." : "");
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

}  // namespace

Grid::Grid(const MeshShape& core)
    : cells_{{core.pp, {"pp"}},
             {core.dp_replicate, {"dp_replicate"}},
             {core.dp_shard, {"dp_shard"}},
             {core.cp, {"cp"}},
             {core.tp, {"tp"}}} {
  groups_.push_back({"world", {"pp", "dp_replicate", "dp_shard", "cp", "tp"}});
  for (const Cell& cell : cells_)
    groups_.push_back({.name = cell.names[0], .axes = cell.names, .is_axis = true});
  derive("dp", {"dp_replicate", "dp_shard"});
  derive("fsdp", {"dp_shard", "cp"});
  derive("loss", {"dp", "cp"});
  derive("self", {});
}

const Grid::Group* Grid::find(std::string_view name) const {
  for (const Group& group : groups_)
    if (group.name == name) return &group;
  return nullptr;
}

bool Grid::is_in(const Cell& cell, const Group& group) const {
  const auto is_of = [&](const std::vector<std::string>& axes) {
    return std::any_of(cell.names.begin(), cell.names.end(),
                       [&](const std::string& name) { return holds(axes, name); });
  };
  return is_of(group.axes) && !is_of(group.without);
}

void Grid::require_new(const std::string& name, int64_t degree) const {
  TITAN_CHECK(!name.empty() && !find(name), config, "the ranks have an axis or group '", name,
              "' already; another name is needed");
  TITAN_CHECK(degree >= 1, config, "axis '", name, "' cannot have ", degree, " ranks");
}

void Grid::add(const std::string& name, int64_t degree) {
  require_new(name, degree);
  size_t place = 0;
  for (size_t i = 0; i < cells_.size(); ++i)
    if (holds(cells_[i].names, "dp_shard")) place = i + 1;
  cells_.insert(cells_.begin() + static_cast<std::ptrdiff_t>(place), {degree, {name}});
  groups_.front().axes.push_back(name);  // the world's
  groups_.push_back({.name = name, .axes = {name}, .is_axis = true});
}

void Grid::borrow(const std::string& name, int64_t degree, const std::vector<std::string>& axes) {
  require_new(name, degree);
  for (const std::string& axis : axes)
    TITAN_CHECK(find(axis), config, "axis '", name, "' cannot borrow from '", axis,
                "': the ranks have no such axis; there are: ", joined(names(), ", "));
  const auto is_lent = [&](const Cell& cell) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const std::string& axis) { return is_in(cell, *find(axis)); });
  };
  std::vector<int64_t> sizes;
  for (const Cell& cell : cells_) sizes.push_back(is_lent(cell) ? cell.size : 1);
  const std::vector<int64_t> taken = taken_of(sizes, degree);
  TITAN_CHECK(!taken.empty(), config, "axis '", name, "' cannot have ", degree, " of the ",
              std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()),
              " ranks along ", joined({axes.rbegin(), axes.rend()}, " x "),
              "; possible: ", possible_degrees(sizes));
  std::vector<Cell> cut;
  for (size_t i = 0; i < cells_.size(); ++i) {
    Cell inner = cells_[i];
    if (taken[i] > 1 && taken[i] < inner.size) {
      Cell outer = inner;
      outer.size /= taken[i];
      inner.size = taken[i];
      cut.push_back(std::move(outer));
    }
    if (taken[i] > 1) inner.names.push_back(name);
    cut.push_back(std::move(inner));
  }
  cells_ = std::move(cut);
  const std::vector<Group> earlier = groups_;
  groups_.push_back({.name = name, .axes = {name}, .is_axis = true, .is_borrowed = true});
  for (const Group& group : earlier)
    if (overlap(group.name, name)) derive(group.name + "-" + name, {group.name}, {name});
}

void Grid::derive(const std::string& name, const std::vector<std::string>& axes,
                  const std::vector<std::string>& without) {
  require_new(name, 1);
  Group group{.name = name};
  for (const std::string& axis : axes) {
    const Group* part = find(axis);
    TITAN_CHECK(part, config, "group '", name, "' is made of '", axis,
                "', which the ranks do not have; there are: ", joined(names(), ", "));
    group.axes.insert(group.axes.end(), part->axes.begin(), part->axes.end());
    group.without.insert(group.without.end(), part->without.begin(), part->without.end());
  }
  for (const std::string& axis : without) {
    const Group* part = find(axis);
    TITAN_CHECK(part, config, "group '", name, "' leaves out '", axis,
                "', which the ranks do not have; there are: ", joined(names(), ", "));
    group.without.insert(group.without.end(), part->axes.begin(), part->axes.end());
  }
  groups_.push_back(std::move(group));
}

int64_t Grid::world_size() const {
  int64_t ranks = 1;
  for (const Cell& cell : cells_) ranks *= cell.size;
  return ranks;
}

bool Grid::has(std::string_view name) const {
  return find(name) != nullptr;
}

std::vector<std::string> Grid::names() const {
  std::vector<std::string> all;
  for (const Group& group : groups_) all.push_back(group.name);
  return all;
}

std::vector<Grid::Axis> Grid::axes() const {
  std::vector<Axis> axes;
  for (const Group& group : groups_)
    if (group.is_axis) axes.push_back({group.name, size(group.name), group.is_borrowed});
  return axes;
}

std::vector<bool> Grid::varies(std::string_view name) const {
  const Group* group = find(name);
  TITAN_ASSERT(group, "the ranks have no axis or group '", name, "'");
  std::vector<bool> varies;
  for (const Cell& cell : cells_) varies.push_back(is_in(cell, *group));
  return varies;
}

std::vector<bool> Grid::varies(const std::vector<std::string>& names) const {
  std::vector<bool> together(cells_.size(), false);
  for (const std::string& name : names) {
    const std::vector<bool> one = varies(name);
    for (size_t i = 0; i < cells_.size(); ++i) together[i] = together[i] || one[i];
  }
  return together;
}

int64_t Grid::size(std::string_view name) const {
  const std::vector<bool> is_member = varies(name);
  int64_t ranks = 1;
  for (size_t i = 0; i < cells_.size(); ++i)
    if (is_member[i]) ranks *= cells_[i].size;
  return ranks;
}

std::vector<int64_t> Grid::coordinates(int64_t rank) const {
  std::vector<int64_t> place(cells_.size());
  for (size_t i = cells_.size(); i-- > 0; rank /= cells_[i].size) place[i] = rank % cells_[i].size;
  return place;
}

std::vector<int> Grid::ranks(int rank, std::string_view name) const {
  const std::vector<bool> is_member = varies(name);
  const std::vector<int64_t> own = coordinates(rank);
  std::vector<int> found = {0};
  for (size_t i = 0; i < cells_.size(); ++i) {
    std::vector<int> inwards;
    for (const int outer : found)
      for (int64_t k = is_member[i] ? 0 : own[i]; k < (is_member[i] ? cells_[i].size : own[i] + 1);
           ++k)
        inwards.push_back(static_cast<int>(outer * cells_[i].size + k));
    found = std::move(inwards);
  }
  return found;
}

bool Grid::spans(std::string_view whole, std::string_view part) const {
  const std::vector<bool> outer = varies(whole), inner = varies(part);
  for (size_t i = 0; i < cells_.size(); ++i)
    if (inner[i] && !outer[i]) return false;
  return true;
}

bool Grid::overlap(std::string_view a, std::string_view b) const {
  const std::vector<bool> one = varies(a), other = varies(b);
  for (size_t i = 0; i < cells_.size(); ++i)
    if (one[i] && other[i]) return true;
  return false;
}

std::string Grid::complement(std::string_view whole, const std::vector<std::string>& groups) const {
  std::vector<bool> rest = varies(whole);
  const std::vector<bool> taken = varies(groups);
  bool is_whole = true;
  for (size_t i = 0; i < cells_.size(); ++i) {
    is_whole = is_whole && !(rest[i] && taken[i]);
    rest[i] = rest[i] && !taken[i];
  }
  if (is_whole) return std::string(whole);
  for (const Group& group : groups_)
    if (group.name.starts_with(std::string(whole) + "-") && varies(group.name) == rest)
      return group.name;
  for (const Group& group : groups_)
    if (varies(group.name) == rest) return group.name;
  fail(ErrorKind::config, "there is no group of the ranks of '", whole, "' that agree along ",
       joined(groups, " and "), ": derive one (titan/axes.h)");
}

}  // namespace titan::dist
