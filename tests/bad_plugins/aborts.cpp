// Calls abort() while the library is loaded.
#include <cstdio>
#include <cstdlib>

namespace {

struct Quitter {
  Quitter() {
    std::fputs("quitter: no table of constants\n", stderr);
    std::abort();
  }
};
const Quitter kQuitter;

}  // namespace
