#include "membership.h"

#include <cstdio>
#include <random>

namespace titan::replicas {
namespace {

std::string uuid4() {
  std::random_device device;
  const auto draw = [&] { return static_cast<unsigned>(device()); };
  const unsigned a = draw(), b = draw(), c = draw(), d = draw();
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%04x%08x", a, b & 0xffffU,
                (b >> 16U) & 0xfffU, 0x8000U | (c & 0x3fffU), c >> 16U, d);
  return text;
}

}  // namespace

Membership::~Membership() = default;

std::string make_member_id(int64_t replica) {
  return "replica_" + std::to_string(replica) + ":" + uuid4();
}

std::string renewed_member_id(const std::string& id) {
  return id.substr(0, id.rfind(':')) + ":" + uuid4();
}

}  // namespace titan::replicas
