// Calls a function that no library has.
namespace acme {
int missing_table(double scale);
}

extern "C" __attribute__((visibility("default"))) int use_it() {
  return acme::missing_table(2.0);
}
