// Reads JSON of a known form as a stream of events, without a tree in memory: headers reach 100 MB.
// Used by the safetensors parser and by the texts inside its metadata.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace titan {

/// Refuses every event; a derived class overrides those that its form allows. Numbers are
/// non-negative integers written without sign, point or exponent, as in safetensors: every other
/// number is refused.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `place`: names the text in errors.
  explicit JsonEvents(std::string place) : place_(std::move(place)) {}

  /// Parses `text`. Throws a data Error naming `place` for malformed JSON, invalid UTF-8, and every
  /// event that the derived class refuses.
  void read(std::string_view text);

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t number) final;
  bool number_unsigned(number_unsigned_t number) override {
    unexpected("the number " + std::to_string(number));
  }
  bool number_float(number_float_t, const string_t& text) override;
  bool string(string_t&) override { unexpected("a string"); }
  bool binary(binary_t&) final { unexpected("binary data"); }
  bool start_object(std::size_t) override { unexpected("an object"); }
  bool key(string_t&) override { unexpected("a name"); }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { unexpected("a list"); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) final;

 protected:
  /// The object that is being read, for errors: "tensor 'wq'". Empty: the whole.
  virtual std::string subject() const { return {}; }
  /// The member that is expected next: "shape[1]". Empty: several are possible.
  virtual std::string field() const { return {}; }
  /// Throws the data Error "cannot read <place>: <subject>: <what>".
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void unexpected(const std::string& found) const;
  /// Refuses a number that does not fit into a signed 64-bit integer.
  [[noreturn]] void refuse_large(number_unsigned_t number) const;

  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

}  // namespace titan
