// A library without TITAN_PLUGIN.
extern "C" __attribute__((visibility("default"))) int another_entry() {
  return 1;
}
