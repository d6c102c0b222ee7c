// A library that a plugin needs. Under the name libtorch_cpu.so it represents a LibTorch.
extern "C" __attribute__((visibility("default"))) int side_library_value() {
  return 7;
}
