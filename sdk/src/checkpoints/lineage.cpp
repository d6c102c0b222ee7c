#include <titan/checkpoints/lineage.h>

#include <algorithm>
#include <cstdio>
#include <random>

namespace titan {
namespace {

constexpr int64_t kLineageVersion = 1;

Value to_value(const Lineage::Point& point) {
  return Value::map({{"job", point.job}, {"branch", point.branch}, {"step", point.step}});
}

Lineage::Point parse_point(const Members& members) {
  return {members.text("job"), members.integer("branch", 0), members.integer("step", 0)};
}

Value to_value(const BranchStart& start) {
  Value value = Value::map();
  if (start.load_step >= 0) value["load_step"] = start.load_step;
  if (!start.excluded.empty()) {
    Value::List excluded;
    for (const std::string& part : start.excluded) excluded.push_back(part);
    value["exclude_from_loading"] = std::move(excluded);
  }
  if (!start.initial_load_path.empty()) value["initial_load_path"] = start.initial_load_path;
  return value;
}

BranchStart parse_start(const Members& members) {
  BranchStart start;
  if (members.find("load_step")) start.load_step = members.integer("load_step", 0);
  if (members.find("exclude_from_loading"))
    for (const Value& part : members.list("exclude_from_loading")) {
      if (!part.is_string()) members.refuse("exclude_from_loading", "is not a list of strings");
      start.excluded.push_back(part.as_string());
    }
  if (members.find("initial_load_path"))
    start.initial_load_path = members.text("initial_load_path");
  return start;
}

}  // namespace

bool begins_branch(const BranchStart& wanted, const BranchStart& applied) {
  const bool goes_back = wanted.load_step >= 0 && wanted.load_step != applied.load_step;
  return goes_back || (!wanted.excluded.empty() && wanted.excluded != applied.excluded);
}

std::string new_job_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(random()));
    id += digits;
  }
  return id;
}

std::optional<size_t> Lineage::place_of(int64_t other, int64_t step) const {
  if (other == branch) return ancestors.size();
  const auto found = std::find_if(ancestors.begin(), ancestors.end(), [&](const Point& point) {
    return point.branch == other && step <= point.step;
  });
  if (found == ancestors.end()) return std::nullopt;
  return static_cast<size_t>(found - ancestors.begin());
}

Value to_value(const Lineage& lineage) {
  Value value =
      Value::map({{"version", kLineageVersion}, {"job", lineage.job}, {"branch", lineage.branch}});
  if (lineage.parent) value["parent"] = to_value(*lineage.parent);
  Value::List ancestors;
  for (const Lineage::Point& point : lineage.ancestors) ancestors.push_back(to_value(point));
  value["ancestors"] = std::move(ancestors);
  value["start"] = to_value(lineage.start);
  value["time"] = lineage.time;
  return value;
}

Lineage parse_lineage(const Members& members) {
  const int64_t version = members.integer("version", 1);
  if (version > kLineageVersion)
    members.refuse("version", "is " + std::to_string(version) + ", but this program reads up to " +
                                  std::to_string(kLineageVersion) +
                                  ": a newer program wrote it; use that one");
  Lineage lineage;
  lineage.job = members.text("job");
  if (lineage.job.empty()) members.refuse("job", "is empty");
  lineage.branch = members.integer("branch", 0);
  if (members.find("parent")) lineage.parent = parse_point(members.map("parent"));
  for (size_t i = 0; i < members.list("ancestors").size(); ++i)
    lineage.ancestors.push_back(parse_point(members.in_list("ancestors", i)));
  lineage.start = parse_start(members.map("start"));
  lineage.time = members.number("time");
  return lineage;
}

}  // namespace titan
