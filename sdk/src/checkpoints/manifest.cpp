#include <titan/checkpoints/manifest.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include <titan/checkpoints/members.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

constexpr const char* kFormat = "titan checkpoint";
constexpr int64_t kVersion = 2;
constexpr const char* kOwnHash = "xxh3_128";
constexpr size_t kHashDigits = 32;

const char* to_string(Contents contents) {
  return contents == Contents::training ? "training" : "weights";
}

constexpr const char* kBorrowed = "borrowed";  // axes whose ranks are already counted in other axes

// Value has no unsigned integers: seeds above 2^63 - 1 are stored as text.
Value seed_value(uint64_t seed) {
  if (seed > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::to_string(seed);
  return static_cast<int64_t>(seed);
}

uint64_t parse_seed(const Members& members) {
  const Value* found = members.find("seed");
  if (!found || !found->is_string()) return members.integer("seed", 0);
  const std::string& text = found->as_string();
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    members.refuse("seed", "is " + in_quotes(text) + ", which is not a 64-bit integer");
  return seed;
}

void check_name(const Members& members, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name == kManifestName ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    members.refuse("name", "is " + in_quotes(name) +
                               ", but must be the name of a file in the checkpoint's folder");
}

const std::string& parse_hash(const Members& members, const char* name) {
  const std::string& text = members.text(name);
  if (!is_hash(text))
    members.refuse(name, "is " + in_quotes(text) + ", but must be 32 hexadecimal digits");
  return text;
}

bool is_axis(const SavedLayout& layout, const std::string& name) {
  return std::any_of(layout.axes.begin(), layout.axes.end(),
                     [&](const dist::Grid::Axis& axis) { return axis.name == name; });
}

SavedLayout parse_layout(const Members& members) {
  SavedLayout layout;
  for (const auto& [name, size] : members.all())
    if (name != kBorrowed && !is_axis(layout, name)) layout.axes.push_back({name});
  int64_t product = 1;
  for (dist::Grid::Axis& axis : layout.axes) {
    axis.size = members.integer(axis.name.c_str(), 1);
    if (__builtin_mul_overflow(product, axis.size, &product))
      members.refuse(axis.name.c_str(), "makes the number of ranks larger than 64 bits with sign");
  }
  if (!members.find(kBorrowed)) return layout;
  const Members borrowed = members.map(kBorrowed);
  for (const auto& [name, size] : borrowed.all())
    layout.axes.push_back({name, borrowed.integer(name.c_str(), 1), true});
  return layout;
}

Contents parse_contents(const Members& members) {
  const std::string& text = members.text("contents");
  for (const Contents contents : {Contents::training, Contents::weights})
    if (text == to_string(contents)) return contents;
  members.refuse("contents", "is " + in_quotes(text) + ", but must be 'training' or 'weights'");
}

/// The offset of the digits of the manifest's own hash, which end before the last quotation mark.
std::optional<size_t> own_hash_place(std::string_view text) {
  const size_t end = text.rfind('"');
  if (end == std::string_view::npos || end < kHashDigits) return std::nullopt;
  return end - kHashDigits;
}

/// The hash of the whole text, with zeros for the digits at `place`.
std::string own_hash(std::string text, size_t place) {
  text.replace(place, kHashDigits, kHashDigits, '0');
  return hash_hex(text);
}

/// Whether the manifest has its own hash. Throws if the hash is wrong.
bool check_own_hash(const Members& members, std::string_view text, bool is_optional) {
  if (is_optional && !members.find(kOwnHash)) return false;
  const std::string& written = parse_hash(members, kOwnHash);
  const std::optional<size_t> place = own_hash_place(text);
  const std::string found = place ? own_hash(std::string(text), *place) : "none";
  if (found != written)
    members.refuse(kOwnHash, "is " + written + ", but that of the text is " + found +
                                 ": it was changed after it was written");
  return true;
}

/// Checks format, version and own hash. Returns whether the manifest has its own hash.
bool check_format(const Members& members, std::string_view text) {
  const std::string& format = members.text("format");
  if (format != kFormat)
    members.refuse("format", "is " + in_quotes(format) + ", but must be '" + kFormat + "'");
  const int64_t version = members.integer("version", 1);
  if (version > kVersion)
    members.refuse("version", "is " + std::to_string(version) + ", but this program reads up to " +
                                  std::to_string(kVersion) + ": it was written by a newer one");
  return check_own_hash(members, text, version == 1);
}

}  // namespace

Value to_value(const ManifestFile& file) {
  Value value = Value::map({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.hash}});
  if (!file.header_hash.empty()) value["header_xxh3_128"] = file.header_hash;
  if (file.num_rows > 0) {
    value["first_row"] = file.first_row;
    value["num_rows"] = file.num_rows;
  }
  return value;
}

ManifestFile parse_manifest_file(const Value& value, const std::string& place, std::string path) {
  const Members members(value, place, std::move(path));
  ManifestFile file;
  file.name = members.text("name");
  check_name(members, file.name);
  file.bytes = members.integer("bytes", 0);
  file.hash = parse_hash(members, "xxh3_128");
  if (members.find("header_xxh3_128")) file.header_hash = parse_hash(members, "header_xxh3_128");
  if (members.find("num_rows")) {
    file.first_row = members.integer("first_row", 0);
    file.num_rows = members.integer("num_rows", 1);
    if (file.first_row > std::numeric_limits<int64_t>::max() - file.num_rows)
      members.refuse("first_row", "is beyond 64 bits with sign");
  }
  return file;
}

int64_t SavedLayout::world_size() const {
  int64_t ranks = 1;
  for (const dist::Grid::Axis& axis : axes)
    if (!axis.is_borrowed) ranks *= axis.size;
  return ranks;
}

Value to_value(const SavedLayout& layout) {
  Value value = Value::map(), borrowed = Value::map();
  for (const dist::Grid::Axis& axis : layout.axes)
    (axis.is_borrowed ? borrowed : value)[axis.name] = axis.size;
  if (!borrowed.as_map().empty()) value[kBorrowed] = std::move(borrowed);
  return value;
}

std::string to_text(const CheckpointManifest& manifest) {
  Value::List files;
  for (const ManifestFile& file : manifest.files) files.push_back(to_value(file));
  Value value = Value::map({{"format", kFormat},
                            {"version", kVersion},
                            {"contents", to_string(manifest.contents)},
                            {"step", manifest.step},
                            {"tokens_seen", manifest.tokens_seen},
                            {"tokens_learned", manifest.tokens_learned},
                            {"lr_step", manifest.lr_step},
                            {"seed", seed_value(manifest.seed)},
                            {"model", manifest.model},
                            {"flavor", manifest.flavor},
                            {"layout", to_value(manifest.layout)},
                            {"time", manifest.time},
                            {"program", manifest.program},
                            {"files", std::move(files)},
                            {"config", manifest.config}});
  if (manifest.loss_scale > 0) {
    value["loss_scale"] = manifest.loss_scale;
    value["loss_scale_steps"] = manifest.loss_scale_steps;
  }
  if (manifest.lineage.is_known()) value["lineage"] = to_value(manifest.lineage);
  value[kOwnHash] = std::string(kHashDigits, '0');
  return with_own_hash(to_json(value, 1) + "\n");
}

std::string with_own_hash(std::string text) {
  const std::optional<size_t> place = own_hash_place(text);
  TITAN_ASSERT(place, "a manifest without a place for its hash");
  return text.replace(*place, kHashDigits, own_hash(text, *place));
}

CheckpointManifest parse_checkpoint_manifest(std::string_view text, const std::string& place) {
  const Value whole = [&] {
    try {
      return parse_json(text);
    } catch (const Error& e) {
      fail(ErrorKind::data, "cannot read ", place, ": ", e.message());
    }
  }();
  const Members members(whole, place, "");
  CheckpointManifest manifest;
  manifest.carries_hash = check_format(members, text);
  manifest.contents = parse_contents(members);
  manifest.step = members.integer("step", 0);
  manifest.tokens_seen = members.integer("tokens_seen", 0);
  manifest.tokens_learned =
      whole.find("tokens_learned") ? members.integer("tokens_learned", 0) : manifest.tokens_seen;
  manifest.lr_step = members.integer("lr_step", 0);
  if (whole.find("loss_scale")) {
    manifest.loss_scale = members.number("loss_scale");
    manifest.loss_scale_steps = members.integer("loss_scale_steps", 0);
  }
  manifest.seed = parse_seed(members);
  manifest.model = members.text("model");
  manifest.flavor = members.text("flavor");
  manifest.layout = parse_layout(members.map("layout"));
  manifest.time = members.number("time");
  manifest.program = members.text("program");
  manifest.config = members.at("config", Value::Type::map);
  if (whole.find("lineage")) manifest.lineage = parse_lineage(members.map("lineage"));

  std::set<std::string_view> names;
  const Value::List& files = members.at("files", Value::Type::list).as_list();
  manifest.files.reserve(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = "files[" + std::to_string(i) + "].";
    manifest.files.push_back(parse_manifest_file(files[i], place, path));
    const std::string& name = manifest.files.back().name;
    if (!names.insert(name).second)
      Members(files[i], place, path).refuse("name", "is " + in_quotes(name) + " a second time");
  }
  return manifest;
}

CheckpointManifest read_checkpoint_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  CheckpointManifest manifest = parse_checkpoint_manifest(read_text(path), path.string());
  const std::filesystem::path place = std::filesystem::absolute(path).lexically_normal();
  const std::optional<int64_t> named = step_of_name(place.parent_path().filename().string());
  const bool is_converted = manifest.contents == Contents::weights && manifest.step == 0;
  TITAN_CHECK(
      !named || *named == manifest.step || is_converted, data, path.string(), " is of step ",
      manifest.step, ", but its folder is named for step ", *named,
      ": one of the two was changed; use another checkpoint, or give the folder its own name "
      "back");
  return manifest;
}

std::optional<int64_t> step_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

}  // namespace titan
