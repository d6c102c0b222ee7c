extern "C" int side_library_value();
extern "C" __attribute__((visibility("default"))) int uses_side_library() {
  return side_library_value();
}
