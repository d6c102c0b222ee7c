// Reads and checks the headers of safetensors files.
#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include <titan/checkpoints/safetensors.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include "files/json_events.h"
#include <titan/files/json_string.h>

namespace titan {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr size_t kMaxDims = 64;  // the limit of tensor libraries

/// {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]}}
class HeaderEvents final : public JsonEvents {
 public:
  explicit HeaderEvents(const std::string& place) : JsonEvents(place) {}

  std::vector<TensorEntry> tensors;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) override {
    if (awaits_ == Awaits::header) {
      awaits_ = Awaits::name;
    } else if (awaits_ == Awaits::metadata) {
      awaits_ = Awaits::metadata_key;
    } else if (awaits_ == Awaits::entry) {
      awaits_ = Awaits::member;
      members_.fill(false);
      num_offsets_ = 0;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (awaits_ == Awaits::name)
      start_name(text);
    else if (awaits_ == Awaits::metadata_key)
      start_metadata_text(text);
    else
      start_member(text);
    return true;
  }

  bool string(string_t& text) override {
    if (awaits_ == Awaits::metadata_text) {
      metadata[metadata_key_] = std::move(text);
      awaits_ = Awaits::metadata_key;
    } else if (awaits_ == Awaits::dtype) {
      tensors.back().dtype = std::move(text);
      awaits_ = Awaits::member;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool null() override {
    if (awaits_ != Awaits::metadata) unexpected("null");
    awaits_ = Awaits::name;
    return true;
  }

  bool start_array(std::size_t) override {
    if (awaits_ == Awaits::shape)
      awaits_ = Awaits::size;
    else if (awaits_ == Awaits::offsets)
      awaits_ = Awaits::offset;
    else
      unexpected("a list");
    return true;
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) refuse_large(number);
    TensorEntry& entry = tensors.empty() ? none_ : tensors.back();
    if (awaits_ == Awaits::size) {
      if (entry.shape.size() == kMaxDims)
        refuse("its shape has more than " + std::to_string(kMaxDims) + " dimensions");
      entry.shape.push_back(static_cast<int64_t>(number));
    } else if (awaits_ == Awaits::offset) {
      if (num_offsets_ == 2) refuse("data_offsets has more than 2 numbers");
      (num_offsets_++ == 0 ? entry.begin : entry.end) = static_cast<int64_t>(number);
    } else {
      JsonEvents::number_unsigned(number);
    }
    return true;
  }

  bool end_array() override {
    if (awaits_ == Awaits::offset && num_offsets_ != 2) refuse("data_offsets must have 2 numbers");
    awaits_ = Awaits::member;
    return true;
  }

  bool end_object() override {
    if (awaits_ == Awaits::member)
      for (size_t i = 0; i < kMembers.size(); ++i)
        if (!members_[i]) refuse("it has no " + std::string(kMembers[i]));
    // the end of the header itself: nothing may follow
    awaits_ = Awaits::name;
    return true;
  }

 protected:
  std::string subject() const override {
    if (awaits_ == Awaits::metadata || awaits_ == Awaits::metadata_key ||
        awaits_ == Awaits::metadata_text)
      return "__metadata__";
    return awaits_ <= Awaits::name ? "" : "tensor " + in_quotes(tensors.back().name);
  }
  std::string field() const override {
    switch (awaits_) {
      case Awaits::dtype:
        return "dtype";
      case Awaits::shape:
        return "shape";
      case Awaits::size:
        return "shape[" + std::to_string(tensors.back().shape.size()) + "]";
      case Awaits::offsets:
        return "data_offsets";
      case Awaits::offset:
        return "data_offsets[" + std::to_string(num_offsets_) + "]";
      case Awaits::metadata_text:
        return in_quotes(metadata_key_);
      default:
        return "";
    }
  }

 private:
  enum class Awaits {
    header,
    name,
    metadata,
    metadata_key,
    metadata_text,
    entry,
    member,
    dtype,
    shape,
    size,
    offsets,
    offset
  };
  static constexpr std::array<std::string_view, 3> kMembers = {"dtype", "shape", "data_offsets"};

  void start_name(string_t& text) {
    if (text != "__metadata__") {
      tensors.emplace_back().name = std::move(text);
      awaits_ = Awaits::entry;
      return;
    }
    if (std::exchange(has_metadata_, true)) refuse("__metadata__ occurs twice");
    awaits_ = Awaits::metadata;
  }

  void start_metadata_text(string_t& text) {
    if (metadata.count(text)) refuse("the name " + in_quotes(text) + " occurs twice");
    metadata_key_ = std::move(text);
    awaits_ = Awaits::metadata_text;
  }

  void start_member(const string_t& text) {
    constexpr Awaits kNext[] = {Awaits::dtype, Awaits::shape, Awaits::offsets};
    const auto found = std::find(kMembers.begin(), kMembers.end(), text);
    // an unknown member may change the meaning of the bytes
    if (found == kMembers.end()) refuse("it has an unknown member " + in_quotes(text));
    const size_t index = found - kMembers.begin();
    if (std::exchange(members_[index], true)) refuse("it has " + text + " twice");
    awaits_ = kNext[index];
  }

  Awaits awaits_ = Awaits::header;
  bool has_metadata_ = false;
  std::string metadata_key_;
  std::array<bool, 3> members_{};
  int num_offsets_ = 0;
  TensorEntry none_;
};

std::string bytes_text(const TensorEntry& entry) {
  return "tensor " + in_quotes(entry.name) + " at bytes " + std::to_string(entry.begin) + " to " +
         std::to_string(entry.end);
}

void refuse_duplicates(const std::vector<TensorEntry>& tensors, const std::string& place) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& entry : tensors) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(ErrorKind::data, "cannot read ", place, ": tensor ", in_quotes(*twice), " occurs twice");
}

/// Tensors must cover the data from its first byte to its last, without overlap and gaps.
void check_places(const std::vector<TensorEntry>& tensors, int64_t data_bytes,
                  const std::string& place) {
  int64_t covered = 0;
  const TensorEntry* last = nullptr;
  for (const TensorEntry& entry : tensors) {
    TITAN_CHECK(entry.end >= entry.begin, data, "cannot read ", place, ": ", bytes_text(entry),
                " ends before it begins");
    TITAN_CHECK(entry.begin >= covered, data, "cannot read ", place, ": ", bytes_text(entry),
                " overlaps ", last ? bytes_text(*last) : "");
    TITAN_CHECK(entry.begin == covered, data, "cannot read ", place, ": bytes ", covered, " to ",
                entry.begin, " belong to no tensor; the next is ", bytes_text(entry));
    const int64_t wanted =
        num_bytes(entry.dtype, entry.shape, place + ": tensor " + in_quotes(entry.name));
    TITAN_CHECK(wanted == entry.end - entry.begin, data, "cannot read ", place, ": ",
                bytes_text(entry), " does not fit its type and shape, which take ", wanted,
                " bytes");
    covered = entry.end;
    last = &entry;
  }
  if (covered == data_bytes) return;
  if (covered < data_bytes)
    fail(ErrorKind::data, "cannot read ", place, ": the last ", data_bytes - covered,
         " bytes belong to no tensor: more than ", covered, " bytes of data follow its header");
  const auto cut = std::find_if(tensors.begin(), tensors.end(),
                                [&](const TensorEntry& entry) { return entry.end > data_bytes; });
  fail(ErrorKind::data, "cannot read ", place, ": it is cut off in ", bytes_text(*cut), ": ",
       data_bytes, " of ", covered, " bytes of data are there");
}

/// The length of the JSON text, checked against the limits of format and file.
int64_t header_length(std::string_view bytes, int64_t file_bytes, const std::string& place) {
  TITAN_CHECK(file_bytes >= kLengthBytes && bytes.size() >= kLengthBytes, data, "cannot read ",
              place, ": it has ", std::min<int64_t>(file_bytes, bytes.size()),
              " bytes, but a safetensors file starts with a length of 8");
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  TITAN_CHECK(length <= kMaxHeaderBytes, data, "cannot read ", place, ": its header has ", length,
              " bytes, the format allows ", kMaxHeaderBytes);
  TITAN_CHECK(static_cast<int64_t>(length) <= file_bytes - kLengthBytes, data, "cannot read ",
              place, ": its header has ", length, " bytes, but the whole file has ", file_bytes);
  return static_cast<int64_t>(length);
}

}  // namespace

SafetensorsHeader parse_header(std::string_view bytes, int64_t file_bytes,
                               const std::string& place) {
  const int64_t length = header_length(bytes, file_bytes, place);
  TITAN_CHECK(static_cast<int64_t>(bytes.size()) >= kLengthBytes + length, data, "cannot read ",
              place, ": its header ends after ", bytes.size() - kLengthBytes, " of ", length,
              " bytes");
  const std::string_view text = bytes.substr(kLengthBytes, length);
  TITAN_CHECK(text.starts_with('{'), data, "cannot read ", place,
              ": its header does not start with '{': it is not a safetensors file",
              utf16_hint(text));

  HeaderEvents events(place);
  events.read(text);
  SafetensorsHeader header;
  header.tensors = std::move(events.tensors);
  header.metadata = std::move(events.metadata);
  header.data_start = kLengthBytes + length;
  refuse_duplicates(header.tensors, place);
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  check_places(header.tensors, file_bytes - header.data_start, place);
  return header;
}

SafetensorsHeader read_header(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  const int64_t file_bytes = file.size();
  std::string bytes(std::min(file_bytes, kLengthBytes), '\0');
  file.read(0, bytes.data(), static_cast<int64_t>(bytes.size()));
  const int64_t length = header_length(bytes, file_bytes, path.string());
  bytes.resize(kLengthBytes + length);
  file.read(kLengthBytes, bytes.data() + kLengthBytes, length);
  return parse_header(bytes, file_bytes, path.string());
}

}  // namespace titan
