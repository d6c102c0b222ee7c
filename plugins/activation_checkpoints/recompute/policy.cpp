#include "policy.h"

#include <utility>

namespace titan::recompute {
namespace {

class KeepNothing final : public Policy {
 public:
  bool keeps(const std::vector<Operation>&) const override { return false; }
};

class KeepCostly final : public Policy {
 public:
  explicit KeepCostly(std::set<std::array<int64_t, 2>> recomputed_shapes)
      : recomputed_shapes_(std::move(recomputed_shapes)) {}

  bool keeps(const std::vector<Operation>& operations) const override {
    if (operations.back().kind != Operation::Kind::matmul) return true;
    if (!counts(operations.back())) return false;
    size_t number = 0;
    for (const Operation& operation : operations) number += counts(operation);
    return number % 2 == 1;
  }

 private:
  bool counts(const Operation& operation) const {
    return operation.kind == Operation::Kind::matmul &&
           !recomputed_shapes_.contains(operation.shape);
  }

  std::set<std::array<int64_t, 2>> recomputed_shapes_;
};

}  // namespace

Policy::~Policy() = default;

std::unique_ptr<Policy> keep_nothing() {
  return std::make_unique<KeepNothing>();
}

std::unique_ptr<Policy> keep_costly(std::set<std::array<int64_t, 2>> recomputed_shapes) {
  return std::make_unique<KeepCostly>(std::move(recomputed_shapes));
}

}  // namespace titan::recompute
