extern "C" int uses_side_library();
extern "C" __attribute__((visibility("default"))) int uses_between() {
  return uses_side_library();
}
