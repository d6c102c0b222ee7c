// The Error that a call throws. Used by the plugins' tests.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::testing {

/// Fails the test, and gives an internal Error without text, when `call` throws none.
template <class Call>
Error error_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no titan::Error was thrown";
  return Error(ErrorKind::internal, "");
}

/// Whether `text` holds `part`; the failure shows both.
inline ::testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace titan::testing
