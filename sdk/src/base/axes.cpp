#include <titan/axes.h>

#include <algorithm>
#include <utility>

#include <titan/error.h>

namespace titan {

void AxisPlan::add(std::string name, int64_t degree, std::string option) {
  rows_.push_back({Kind::add, std::move(name), degree, {}, {}, std::move(option)});
}

void AxisPlan::borrow(std::string name, int64_t degree, std::vector<std::string> axes,
                      std::string option) {
  rows_.push_back({Kind::borrow, std::move(name), degree, std::move(axes), {}, std::move(option)});
}

void AxisPlan::derive(std::string name, std::vector<std::string> axes,
                      std::vector<std::string> without) {
  rows_.push_back({Kind::derive, std::move(name), 1, std::move(axes), std::move(without)});
}

int64_t AxisPlan::num_added_ranks() const {
  int64_t ranks = 1;
  for (const Row& row : rows_)
    if (row.kind == Kind::add) ranks *= std::max<int64_t>(1, row.degree);
  return ranks;
}

void AxisPlan::apply(dist::Grid& grid) const {
  for (const Row& row : rows_) {
    try {
      switch (row.kind) {
        case Kind::add:
          grid.add(row.name, row.degree);
          break;
        case Kind::borrow:
          grid.borrow(row.name, row.degree, row.axes);
          break;
        case Kind::derive:
          grid.derive(row.name, row.axes, row.without);
          break;
      }
    } catch (const Error& error) {
      if (row.option.empty()) throw;
      fail(error.kind(), "option '", row.option, "': ", error.message());
    }
  }
}

}  // namespace titan
