// Precompiled for files of the tree that see no torch, where a target has many of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/value.h>
