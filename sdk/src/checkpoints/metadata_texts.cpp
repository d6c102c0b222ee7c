#include <titan/checkpoints/metadata_texts.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <titan/files/hash.h>
#include "files/json_events.h"
#include <titan/files/json_string.h>

namespace titan {
namespace {

class ShardingEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  std::map<std::string, std::vector<int64_t>> offsets;

  bool start_object(std::size_t) override {
    // depth 0: the text, 1: a tensor, 2: its members
    if (depth_ < 2 || skips()) return enter();
    unexpected("an object");
  }
  bool start_array(std::size_t) override {
    if (depth_ < 2) unexpected("a list");
    if (depth_ == 2 && is_offsets_) is_list_ = true;
    if (depth_ > 2 && !skips()) unexpected("a list");
    return enter();
  }
  bool end_object() override {
    if (--depth_ == 1 && !std::exchange(has_offsets_, false)) refuse("it has no saved_offsets");
    return true;
  }
  bool end_array() override {
    if (--depth_ == 2 && is_offsets_) is_list_ = false;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      const auto [place, is_new] = offsets.try_emplace(text);
      tensor_ = &*place;
      if (!is_new) refuse("it occurs twice");
    } else if (depth_ == 2) {
      is_offsets_ = text == "saved_offsets";
      if (is_offsets_ && std::exchange(has_offsets_, true)) refuse("it has saved_offsets twice");
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (skips()) return true;
    if (!is_list_) JsonEvents::number_unsigned(number);
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) refuse_large(number);
    tensor_->second.push_back(static_cast<int64_t>(number));
    return true;
  }
  bool null() override { return skips() || JsonEvents::null(); }
  bool boolean(bool value) override { return skips() || JsonEvents::boolean(value); }
  bool string(string_t& text) override { return skips() || JsonEvents::string(text); }

 protected:
  std::string subject() const override {
    return std::string(kShardingKey) + (tensor_ ? ": tensor " + in_quotes(tensor_->first) : "");
  }
  std::string field() const override {
    if (!tensor_ || !is_offsets_) return "";
    return "saved_offsets" + (is_list_ ? "[" + std::to_string(tensor_->second.size()) + "]" : "");
  }

 private:
  static constexpr int kMaxDepth = 100;

  bool enter() {
    if (++depth_ > kMaxDepth) refuse("it is nested too deeply");
    return true;
  }
  /// Whether the value is inside a member of a tensor that is not saved_offsets.
  bool skips() const { return depth_ >= 2 && !is_offsets_; }

  int depth_ = 0;
  std::pair<const std::string, std::vector<int64_t>>* tensor_ = nullptr;
  bool is_offsets_ = false, has_offsets_ = false, is_list_ = false;
};

class HashEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  std::map<std::string, std::string> hashes;

  bool start_object(std::size_t) override {
    if (std::exchange(is_open_, true)) unexpected("an object");
    return true;
  }
  bool key(string_t& text) override {
    const auto [place, is_new] = hashes.try_emplace(text);
    tensor_ = &*place;
    if (!is_new) refuse("it occurs twice");
    return true;
  }
  bool string(string_t& text) override {
    if (!tensor_) unexpected("a string");
    if (!is_hash(text)) refuse(in_quotes(text) + " is not a hash of 32 hexadecimal digits");
    tensor_->second = std::move(text);
    return true;
  }

 protected:
  std::string subject() const override {
    return std::string(kTensorHashesKey) + (tensor_ ? ": tensor " + in_quotes(tensor_->first) : "");
  }

 private:
  bool is_open_ = false;
  std::pair<const std::string, std::string>* tensor_ = nullptr;
};

}  // namespace

std::map<std::string, std::vector<int64_t>> parse_sharding(std::string_view text,
                                                           const std::string& place) {
  ShardingEvents events(place);
  events.read(text);
  return std::move(events.offsets);
}

std::map<std::string, std::string> parse_tensor_hashes(std::string_view text,
                                                       const std::string& place) {
  HashEvents events(place);
  events.read(text);
  return std::move(events.hashes);
}

// Separators and escapes are those of Python's json module, so that the text equals PyTorch's.
std::string sharding_text(const std::map<std::string, std::vector<int64_t>>& saved_offsets) {
  std::string text = "{";
  const char* separator = "";
  for (const auto& [name, offsets] : saved_offsets) {
    text += separator;
    separator = ", ";
    append_json_string(text, name, Escapes::ascii);
    text += ": {\"saved_offsets\": [";
    for (size_t i = 0; i < offsets.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(offsets[i]);
    text += "]}";
  }
  return text + "}";
}

std::string tensor_hashes_text(const std::map<std::string, std::string>& hashes) {
  std::string text = "{";
  const char* separator = "";
  for (const auto& [name, hash] : hashes) {
    text += separator;
    separator = ", ";
    append_json_string(text, name, Escapes::ascii);
    text += ": \"" + hash + "\"";
  }
  return text + "}";
}

std::map<std::string, std::string> shard_metadata(
    const std::map<std::string, std::vector<int64_t>>& saved_offsets,
    const std::map<std::string, std::string>& hashes) {
  return {{kShardingKey, sharding_text(saved_offsets)},
          {"DCP_VERSION", "1.0"},
          {"format", "pt"},
          {kConventionKey, kOwnConvention},
          {kTensorHashesKey, tensor_hashes_text(hashes)}};
}

}  // namespace titan
