#include "comparison.h"

#include <algorithm>

namespace titan::jinja {

void raise(const std::string& what) {
  throw TemplateError(what);
}

std::string type_name(const Object& object) {
  if (object.is_none()) return "NoneType";
  if (object.is_undefined()) return "Undefined";
  if (object.is_boolean()) return "bool";
  if (object.is_integer()) return "int";
  if (object.is_float()) return "float";
  if (object.is_text()) return object.is_markup() ? "Markup" : "str";
  if (const Sequence* sequence = object.sequence()) {
    switch (sequence->kind) {
      case SequenceKind::list:
        return "list";
      case SequenceKind::tuple:
        return "tuple";
      case SequenceKind::generator:
        return "generator";
      case SequenceKind::dict_keys:
        return "dict_keys";
      case SequenceKind::dict_values:
        return "dict_values";
      case SequenceKind::dict_items:
        return "dict_items";
    }
  }
  if (object.dict()) return "dict";
  if (object.mapping()) return "Namespace";
  return object.loop() ? "LoopContext" : "function";
}

const Object* Mapping::find(std::string_view key) const {
  for (const auto& [name, value] : items)
    if (const std::string* text = name.text(); text && *text == key) return &value;
  return nullptr;
}

const Object* Mapping::find(const Object& key) const {
  if (const std::string* text = key.text()) return find(std::string_view(*text));
  if (const Sequence* sequence = key.sequence(); sequence && sequence->kind == SequenceKind::list)
    raise("unhashable type: 'list'");
  if (key.dict()) raise("unhashable type: 'dict'");
  for (const auto& [name, value] : items)
    if (equals(name, key)) return &value;
  return nullptr;
}

void Mapping::set(const Object& key, Object value) {
  if (const Object* found = find(key))
    *const_cast<Object*>(found) = std::move(value);  // an element of this mapping
  else
    items.emplace_back(key, std::move(value));
}

namespace {

/// A list or a tuple.
bool is_listed(const Object& object) {
  const Sequence* sequence = object.sequence();
  return sequence &&
         (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple);
}

/// -1, 0, 1; raises for values without an order.
int order_of(const Object& a, const Object& b) {
  for (const Object* side : {&a, &b})
    if (side->is_undefined()) raise(side->why_undefined());
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer())
      return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
    return a.number() < b.number() ? -1 : a.number() > b.number();
  }
  if (a.is_text() && b.is_text()) {  // UTF-8 has the order of code points
    const int order = a.text()->compare(*b.text());
    return order < 0 ? -1 : order > 0;
  }
  if (is_listed(a) && is_listed(b) && a.sequence()->kind == b.sequence()->kind) {
    const auto &left = a.sequence()->items, &right = b.sequence()->items;
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      if (!equals(left[i], right[i])) return order_of(left[i], right[i]);
    return left.size() < right.size() ? -1 : left.size() > right.size();
  }
  raise("'<' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) + "'");
}

}  // namespace

bool is_true(const Object& object) {
  if (object.is_none() || object.is_undefined()) return false;
  if (object.is_integer()) return object.integer() != 0;
  if (object.is_float()) return object.number() != 0;
  if (const std::string* text = object.text()) return !text->empty();
  if (const Sequence* sequence = object.sequence())
    return sequence->kind == SequenceKind::generator || !sequence->items.empty();
  if (const Mapping* dict = object.dict()) return !dict->items.empty();
  return true;
}

bool equals(const Object& a, const Object& b) {
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  if (a.is_text() && b.is_text()) return *a.text() == *b.text();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.sequence() && b.sequence()) {
    if (a.sequence() == b.sequence()) return true;
    if (!is_listed(a) || a.sequence()->kind != b.sequence()->kind) return false;
    const auto &left = a.sequence()->items, &right = b.sequence()->items;
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), equals);
  }
  if (a.dict() && b.dict()) {
    if (a.dict()->items.size() != b.dict()->items.size()) return false;
    for (const auto& [key, value] : a.dict()->items) {
      const Object* other = b.dict()->find(key);
      if (!other || !equals(value, *other)) return false;
    }
    return true;
  }
  return is_same(a, b);
}

bool less(const Object& a, const Object& b) {
  return order_of(a, b) < 0;
}

bool is_same(const Object& a, const Object& b) {
  if (a.data().index() != b.data().index()) return false;
  if (a.sequence()) return a.sequence() == b.sequence();
  if (a.mapping()) return a.mapping() == b.mapping();
  if (a.function()) return a.function() == b.function();
  if (a.loop()) return a.loop() == b.loop();
  return equals(a, b);
}

}  // namespace titan::jinja
