// Writes to an invalid address while the library is loaded.
namespace {

struct Faulty {
  Faulty() {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
};
const Faulty kFaulty;

}  // namespace
