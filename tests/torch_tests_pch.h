// Precompiled header of the tests with torch and their helpers: includes that nearly all of them
// need. Not for headers whose templates every file would instantiate again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <titan/dist/mesh.h>
#include <titan/nn/module.h>
#include <titan/value.h>
