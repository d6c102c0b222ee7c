#include <titan/recompute.h>

#include <atomic>
#include <utility>

namespace titan {
namespace {

thread_local RecomputeScope* current_scope = nullptr;
std::atomic<double> total_recomputed{0};

}  // namespace

RecomputeScope::~RecomputeScope() = default;

RecomputeScope* RecomputeScope::current() {
  return current_scope;
}

double RecomputeScope::recomputed_flops() {
  return total_recomputed;
}

void RecomputeScope::add_recomputed(double flops) {
  total_recomputed.fetch_add(flops);
}

RecomputeScope::Entry::Entry(RecomputeScope* scope)
    : before_(std::exchange(current_scope, scope)) {}

RecomputeScope::Entry::~Entry() {
  current_scope = before_;
}

}  // namespace titan
