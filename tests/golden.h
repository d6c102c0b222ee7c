// Compares texts with files under tests/golden/. Used by tests of messages and outputs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace titan::testing {

/// Compares `text` with tests/golden/<name>. With TITAN_UPDATE_GOLDEN=1 the file is rewritten and
/// the test fails anyway, so that an update is never mistaken for a pass.
inline void expect_golden_text(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(TITAN_TEST_SOURCE_DIR) / "golden" / name;
  if (std::getenv("TITAN_UPDATE_GOLDEN")) {
    std::ofstream(file, std::ios::binary) << text;
    ADD_FAILURE() << "golden files were rewritten: check " << file
                  << ", then run again without TITAN_UPDATE_GOLDEN";
    return;
  }
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file << " cannot be read";
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(in), {})) << "golden file " << file;
}

}  // namespace titan::testing
