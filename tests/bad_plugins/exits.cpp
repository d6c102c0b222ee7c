// Ends the whole process while the library is loaded.
#include <unistd.h>

namespace {

struct Leaver {
  Leaver() { ::_exit(7); }
};
const Leaver kLeaver;

}  // namespace
