#include <titan/memory_use.h>

#include <utility>

namespace titan {
namespace {

thread_local MemoryUse current_use = MemoryUse::temporary;

}  // namespace

MemoryUseScope::MemoryUseScope(MemoryUse use) : before_(std::exchange(current_use, use)) {}

MemoryUseScope::~MemoryUseScope() {
  current_use = before_;
}

MemoryUse MemoryUseScope::current() {
  return current_use;
}

}  // namespace titan
