// Never returns while the library is loaded.
#include <unistd.h>

namespace {

struct Waiter {
  Waiter() {
    for (;;) ::pause();
  }
};
const Waiter kWaiter;

}  // namespace
