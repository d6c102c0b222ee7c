// Hash that identifies the contents of a data set. Used by the data sets that read files.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace titan::datasets {

/// XXH3-128 of the added names, sizes, counts and options.
class Fingerprint {
 public:
  Fingerprint& add(std::string_view text);
  Fingerprint& add(const char* text) { return add(std::string_view(text)); }
  Fingerprint& add(std::integral auto number) { return add(std::to_string(number)); }

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  std::string content_;
};

}  // namespace titan::datasets
