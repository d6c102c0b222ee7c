// Methods of str, dict and list that Jinja's sandbox lets a template call.
#include <algorithm>
#include <functional>
#include <map>

#include "bound_arguments.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"
#include "string_methods.h"

namespace titan::jinja {
namespace {

struct CollectionMethod {
  std::vector<std::string_view> names;
  size_t num_required;
  Object (*call)(const Object& self, const BoundArguments& arguments);
};

Object view_of(const Object& self, SequenceKind kind) {
  std::vector<Object> items;
  for (const auto& [key, value] : self.dict()->items)
    items.push_back(kind == SequenceKind::dict_keys     ? key
                    : kind == SequenceKind::dict_values ? value
                                                        : Object::tuple({key, value}));
  return Object::sequence(std::move(items), kind);
}

const std::map<std::string_view, CollectionMethod>& dict_methods() {
  static const std::map<std::string_view, CollectionMethod> methods = {
      {"keys",
       {{},
        0,
        [](const Object& self, const BoundArguments&) {
          return view_of(self, SequenceKind::dict_keys);
        }}},
      {"values",
       {{},
        0,
        [](const Object& self, const BoundArguments&) {
          return view_of(self, SequenceKind::dict_values);
        }}},
      {"items",
       {{},
        0,
        [](const Object& self, const BoundArguments&) {
          return view_of(self, SequenceKind::dict_items);
        }}},
      {"copy",
       {{},
        0,
        [](const Object& self, const BoundArguments&) {
          return Object(std::make_shared<Mapping>(*self.dict()));
        }}},
      {"get",
       {{"key", "default"},
        1,
        [](const Object& self, const BoundArguments& arguments) {
          const Object* found = self.dict()->find(arguments[0]);
          return found ? *found : arguments[1];
        }}},
  };
  return methods;
}

const std::map<std::string_view, CollectionMethod>& list_methods() {
  static const std::map<std::string_view, CollectionMethod> methods = {
      {"count",
       {{"value"},
        1,
        [](const Object& self, const BoundArguments& arguments) {
          const auto& items = self.sequence()->items;
          return Object(static_cast<int64_t>(
              std::count_if(items.begin(), items.end(),
                            [&](const Object& item) { return equals(item, arguments[0]); })));
        }}},
      {"index",
       {{"value"},
        1,
        [](const Object& self, const BoundArguments& arguments) -> Object {
          const auto& items = self.sequence()->items;
          for (size_t i = 0; i < items.size(); ++i)
            if (equals(items[i], arguments[0])) return i;
          raise(repr_of(arguments[0]) + " is not in list");
        }}},
      {"copy",
       {{},
        0,
        [](const Object& self, const BoundArguments&) {
          return Object(std::make_shared<Sequence>(*self.sequence()));
        }}},
  };
  return methods;
}

/// Methods that change a value in place; Jinja's sandbox refuses them.
bool is_modifying(const Object& object, std::string_view name) {
  static constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view kOfList[] = {"append", "clear", "pop",    "reverse",
                                                 "insert", "sort",  "extend", "remove"};
  const auto has = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return object.dict() ? has(kOfDict)
                       : object.sequence()->kind == SequenceKind::list && has(kOfList);
}

std::optional<Object> bound(const std::map<std::string_view, CollectionMethod>& methods,
                            const Object& self, std::string_view name) {
  const auto found = methods.find(name);
  if (found == methods.end()) return std::nullopt;
  const CollectionMethod& method = found->second;
  return Object::function(
      std::string(name), [self, &method, name = found->first](Runtime&, Arguments arguments) {
        return method.call(self, BoundArguments(std::string(name), std::move(arguments),
                                                method.names, method.num_required));
      });
}

Object unsafe(const Object& object, std::string_view name) {
  return Object::undefined("access to attribute '" + std::string(name) + "' of '" +
                           type_name(object) + "' object is unsafe.");
}

}  // namespace

std::optional<Object> method_of(const Object& object, std::string_view name) {
  if (object.is_text()) return string_method(object, name);
  if (object.dict())
    return is_modifying(object, name) ? unsafe(object, name) : bound(dict_methods(), object, name);
  if (const Sequence* sequence = object.sequence()) {
    if (is_modifying(object, name)) return unsafe(object, name);
    if (sequence->kind == SequenceKind::tuple && name == "copy") return std::nullopt;
    if (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple)
      return bound(list_methods(), object, name);
  }
  return std::nullopt;
}

}  // namespace titan::jinja
