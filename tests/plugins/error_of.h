// The Error that a call throws. Used by the plugins' tests.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::testing {

/// The Error that `call` throws. When it throws none, fails the test and returns an internal Error
/// without text.
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

/// Whether `text` contains `part`; a failure shows both.
inline ::testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace titan::testing
