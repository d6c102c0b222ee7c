// The entry table of another release: one field more.
#include <titan/plugin.h>

namespace {

struct LongerEntry {
  uint32_t struct_size;
  void (*register_plugin)(titan::Plugin*);
  void (*unregister_plugin)(titan::Plugin*);
};

constexpr LongerEntry kEntry = {sizeof(LongerEntry), [](titan::Plugin*) {}, [](titan::Plugin*) {}};

}  // namespace

extern "C" TITAN_API const void* titan_plugin_entry_v1() {
  return &kEntry;
}
