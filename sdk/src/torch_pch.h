// Precompiled for every file of the tree that sees torch: what they all include anyway, and no
// more, for templates that a header here uses are instantiated in each file anew.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
