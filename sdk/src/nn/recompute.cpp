#include <titan/recompute.h>

#include <atomic>
#include <utility>

#include <ATen/core/grad_mode.h>

namespace titan {
namespace {

thread_local RecomputeScope* current_scope = nullptr;
thread_local bool is_run_again = false;  // in this scope or an enclosing one
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
    : before_(std::exchange(current_scope, scope)), was_again_(is_run_again) {
  if (scope && scope->runs_again()) is_run_again = true;
}

RecomputeScope::Entry::~Entry() {
  current_scope = before_;
  is_run_again = was_again_;
}

bool is_first_run() {
  return at::GradMode::is_enabled() && !is_run_again;
}

}  // namespace titan
