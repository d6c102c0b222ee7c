// Endpoint: the arguments of Device::connect, which connects a group of ranks.
#pragma once

#include <chrono>
#include <string>

namespace c10d {
class Store;
}

namespace titan::dist {

/// One rank of a group that is to be connected.
struct Endpoint {
  c10d::Store& store;  ///< where the ranks of the group find each other; c10d holds it by intrusive
                       ///< pointer, so a backend may keep it
  std::string name;    ///< unique among the run's groups; a prefix for keys in the store
  int rank = 0;        ///< in the group
  int size = 1;
  std::chrono::milliseconds timeout{300'000};  ///< of connecting, and of operations until changed
  bool is_one_host = false;                    ///< all ranks of the run are on this machine
};

}  // namespace titan::dist
