// Shared by the modes of device_probe: the device under test and the lines of the report.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/device.h>
#include <titan/value.h>

namespace titan::probe {

using at::Tensor;
using Tensors = std::vector<Tensor>;

struct Options {
  int64_t rounds = 1;     ///< runs of each operation, which must give the same bits
  std::string only = {};  ///< operations whose name contains this; empty: all
  bool is_small = false;  ///< leaves out the shapes of an 8B model
};

/// Prints one JSON Line and flushes, so that rows survive a crash.
void print_line(const Value& value);

/// The error's message, without the stack of a c10::Error.
std::string text_of(const std::exception& error);

/// Runs `make` and prints the row that it returns, or `head` with "error" and "ok": false when it
/// throws. Returns whether the row is ok. Throws DeadDevice when the device no longer computes.
bool print_row(Device& device, const Value& head, const std::function<Value()>& make);

/// Every later call to the device fails as well.
class DeadDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The modes. Each prints rows and returns whether all of them are ok.
bool check_operations(Device& device, const Options& options);
bool check_float8(Device& device, const Options& options);
bool measure_speed(Device& device, const Options& options);

}  // namespace titan::probe
