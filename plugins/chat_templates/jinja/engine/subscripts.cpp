// object[key], object.name and slices.
#include <algorithm>
#include <charconv>

#include "characters.h"
#include "operations.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

std::string owner_of(const Object& object) {
  return object.is_none() ? "None" : "'" + type_name(object) + " object'";
}

Object missing_in(const Object& object, const Object& key) {
  if (key.is_text())
    return Object::undefined((object.is_none() ? "'None'" : owner_of(object)) +
                             " has no attribute '" + *key.text() + "'");
  return Object::undefined(owner_of(object) + " has no element " + repr_of(key));
}

bool has_places(const Object& object) {
  if (object.is_text()) return true;
  const Sequence* sequence = object.sequence();
  return sequence &&
         (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple);
}

/// Python's object[key]; nullopt where Python raises.
std::optional<Object> own_item(const Object& object, const Object& key) {
  if (const Mapping* dict = object.dict()) {
    const bool is_hashable =
        !key.dict() && !(key.sequence() && key.sequence()->kind == SequenceKind::list);
    const Object* found = is_hashable ? dict->find(key) : nullptr;
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!has_places(object) || !key.is_integer()) return std::nullopt;
  int64_t index = key.integer();
  const int64_t length = length_of(object);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  if (const Sequence* sequence = object.sequence())
    return sequence->items[static_cast<size_t>(index)];
  const std::vector<size_t> starts = character_starts(*object.text());
  const auto at = static_cast<size_t>(index);
  return Object(object.text()->substr(starts[at], starts[at + 1] - starts[at]));
}

std::optional<Object> loop_attribute(const Loop& loop, std::string_view name,
                                     const Object& object) {
  const auto length = static_cast<int64_t>(loop.items.size());
  if (name == "index") return loop.index0 + 1;
  if (name == "index0") return loop.index0;
  if (name == "revindex") return length - loop.index0;
  if (name == "revindex0") return length - loop.index0 - 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return loop.index0 + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return loop.depth0 + 1;
  if (name == "depth0") return loop.depth0;
  if (name == "previtem")
    return loop.index0 == 0 ? Object::undefined("there is no previous item")
                            : loop.items[static_cast<size_t>(loop.index0 - 1)];
  if (name == "nextitem")
    return loop.index0 + 1 == length ? Object::undefined("there is no next item")
                                     : loop.items[static_cast<size_t>(loop.index0 + 1)];
  if (name == "cycle")
    return Object::function("cycle", [object](Runtime&, Arguments arguments) {
      const auto& values = arguments.positional;
      if (values.empty()) raise("no items for cycling given");
      return values[static_cast<size_t>(object.loop()->index0) % values.size()];
    });
  if (name == "changed")
    return Object::function("changed", [object](Runtime&, Arguments arguments) {
      Loop& state = *object.loop();
      const bool is_equal =
          state.was_asked &&
          std::equal(state.changed.begin(), state.changed.end(), arguments.positional.begin(),
                     arguments.positional.end(), equals);
      state.was_asked = true;
      state.changed = std::move(arguments.positional);
      return Object(!is_equal);
    });
  return std::nullopt;
}

std::optional<Object> own_attribute(const Object& object, std::string_view name) {
  if (name.starts_with('_'))
    return Object::undefined("access to attribute '" + std::string(name) + "' of '" +
                             type_name(object) + "' object is unsafe.");
  if (const Loop* loop = object.loop()) return loop_attribute(*loop, name, object);
  if (object.mapping() && !object.dict()) {
    const Object* found = object.mapping()->find(name);
    return found ? std::optional(*found) : std::nullopt;
  }
  return method_of(object, name);
}

}  // namespace

Object item_of(const Object& object, const Object& key) {
  if (object.is_undefined()) raise(object.why_undefined());
  if (auto found = own_item(object, key)) return *std::move(found);
  if (key.is_text())
    if (auto found = own_attribute(object, *key.text())) return *std::move(found);
  return missing_in(object, key);
}

Object attribute_of(const Object& object, const std::string& name) {
  if (object.is_undefined()) raise(object.why_undefined());
  // Names with a leading underscore are not attributes of these types, but may be keys.
  if (!name.starts_with('_'))
    if (auto found = own_attribute(object, name)) return *std::move(found);
  if (auto found = own_item(object, name)) return *std::move(found);
  if (name.starts_with("__")) return *own_attribute(object, name);
  return missing_in(object, name);
}

Object slice_of(const Object& object, const Object& start, const Object& stop, const Object& step) {
  if (object.is_undefined()) raise(object.why_undefined());
  if (!has_places(object)) {
    if (object.dict()) raise("unhashable type: 'slice'");
    return Object::undefined(owner_of(object) + " is not subscriptable");
  }
  for (const Object* bound : {&start, &stop, &step})
    if (!bound->is_none() && !bound->is_integer())
      return Object::undefined("slice indices must be integers or None");
  const int64_t length = length_of(object);
  const int64_t by = step.is_none() ? 1 : step.integer();
  if (by == 0) raise("slice step cannot be zero");
  const auto bound = [&](const Object& given, int64_t otherwise) {
    if (given.is_none()) return otherwise;
    int64_t value = given.integer();
    if (value < 0) value = std::max<int64_t>(value, -length - 1) + length;
    return by > 0 ? std::clamp<int64_t>(value, 0, length)
                  : std::clamp<int64_t>(value, -1, length - 1);
  };
  const int64_t first = bound(start, by > 0 ? 0 : length - 1);
  const int64_t end = bound(stop, by > 0 ? length : -1);
  std::vector<size_t> picked;
  for (int64_t i = first; by > 0 ? i < end : i > end; i += by) {
    picked.push_back(static_cast<size_t>(i));
    if (by > length || by < -length) break;
  }
  if (const Sequence* sequence = object.sequence()) {
    std::vector<Object> items;
    for (const size_t i : picked) items.push_back(sequence->items[i]);
    return Object::sequence(std::move(items), sequence->kind);
  }
  const std::vector<size_t> starts = character_starts(*object.text());
  std::string result;
  for (const size_t i : picked)
    result += object.text()->substr(starts[i], starts[i + 1] - starts[i]);
  return result;
}

}  // namespace titan::jinja
