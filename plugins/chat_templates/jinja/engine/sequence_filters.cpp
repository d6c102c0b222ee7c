// Filters on lists and mappings.
#include <algorithm>
#include <functional>
#include <map>

#include "bound_arguments.h"
#include "builtins.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

Object without_case(const Object& value) {
  return value.is_text() ? Object(lower(*value.text())) : value;
}

/// Looks up an attribute path such as "a.0.b" in an item; numbers are indices of lists.
class AttributeGetter {
 public:
  AttributeGetter() = default;
  explicit AttributeGetter(const Object& attribute, Object otherwise = {})
      : otherwise_(std::move(otherwise)) {
    if (attribute.is_none()) return;
    if (!attribute.is_text()) {
      parts_.push_back(attribute);
      return;
    }
    std::string_view rest = *attribute.text();
    while (true) {
      const size_t dot = rest.find('.');
      const std::string part(rest.substr(0, dot));
      const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
      parts_.push_back(is_number ? *parsed_int(part, 10) : Object(part));
      if (dot == rest.npos) break;
      rest.remove_prefix(dot + 1);
    }
  }
  Object operator()(Object item) const {
    for (const Object& part : parts_) {
      item = item_of(item, part);
      if (item.is_undefined() && !otherwise_.is_none()) item = otherwise_;
    }
    return item;
  }

 private:
  std::vector<Object> parts_;
  Object otherwise_;
};

struct SortOrder {
  bool is_reversed = false;
  bool heeds_case = false;
};

/// Stable, as Python's sort, also in reverse.
template <class Key>
std::vector<Object> sorted(std::vector<Object> items, SortOrder order, Key key) {
  std::vector<std::pair<Object, Object>> keyed;
  for (Object& item : items) {
    Object sort_key = key(item);
    keyed.emplace_back(order.heeds_case ? sort_key : without_case(sort_key), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return order.is_reversed ? less(b.first, a.first) : less(a.first, b.first);
  });
  items.clear();
  for (auto& [sort_key, item] : keyed) items.push_back(std::move(item));
  return items;
}

Object sort_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("sort", std::move(arguments),
                             {"value", "reverse", "case_sensitive", "attribute"}, 1);
  std::vector<AttributeGetter> getters;
  if (bound.has(3) && bound[3].is_text()) {
    std::string_view rest = *bound[3].text();
    for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1))
      getters.emplace_back(Object(std::string(rest.substr(0, comma))));
    getters.emplace_back(Object(std::string(rest)));
  } else {
    getters.emplace_back(bound[3]);
  }
  const SortOrder order = {.is_reversed = bound.boolean(1, false),
                           .heeds_case = bound.boolean(2, false)};
  return Object::sequence(sorted(items_of(bound[0]), order, [&](const Object& item) {
    if (getters.size() == 1) return getters[0](item);
    std::vector<Object> keys;
    for (const AttributeGetter& getter : getters)
      keys.push_back(order.heeds_case ? getter(item) : without_case(getter(item)));
    return Object::tuple(std::move(keys));
  }));
}

Object dict_sort(Runtime&, Arguments arguments) {
  const BoundArguments bound("dictsort", std::move(arguments),
                             {"value", "case_sensitive", "by", "reverse"}, 1);
  const std::string by = bound.has(2) ? bound.text(2) : "key";
  if (by != "key" && by != "value") raise("You can only sort by either \"key\" or \"value\"");
  if (bound[0].is_undefined()) raise(bound[0].why_undefined());
  if (!bound[0].dict()) raise("'" + type_name(bound[0]) + "' object has no attribute 'items'");
  std::vector<Object> pairs;
  for (const auto& [key, value] : bound[0].dict()->items)
    pairs.push_back(Object::tuple({key, value}));
  return Object::sequence(
      sorted(std::move(pairs),
             {.is_reversed = bound.boolean(3, false), .heeds_case = bound.boolean(1, false)},
             [&](const Object& pair) { return pair.sequence()->items[by == "key" ? 0 : 1]; }));
}

Object unique_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("unique", std::move(arguments),
                             {"value", "case_sensitive", "attribute"}, 1);
  const AttributeGetter getter(bound[2]);
  const bool heeds_case = bound.boolean(1, false);
  std::vector<Object> kept, keys;
  for (const Object& item : items_of(bound[0])) {
    const Object key = heeds_case ? getter(item) : without_case(getter(item));
    if (std::any_of(keys.begin(), keys.end(), [&](const Object& k) { return equals(k, key); }))
      continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return Object::sequence(std::move(kept), SequenceKind::generator);
}

template <bool is_max>
Object extreme(Runtime&, Arguments arguments) {
  const BoundArguments bound(is_max ? "max" : "min", std::move(arguments),
                             {"value", "case_sensitive", "attribute"}, 1);
  const AttributeGetter getter(bound[2]);
  const std::vector<Object> items = items_of(bound[0]);
  if (items.empty()) return Object::undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Object& item) {
    return bound.boolean(1, false) ? getter(item) : without_case(getter(item));
  };
  const Object* best = &items[0];
  for (const Object& item : items)
    if (is_max ? less(key_of(*best), key_of(item)) : less(key_of(item), key_of(*best)))
      best = &item;
  return *best;
}

Object join_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("join", std::move(arguments), {"value", "d", "attribute"}, 1);
  const AttributeGetter getter(bound[2]);
  const std::string separator = str_of(bound.or_else(1, ""));
  std::string result;
  bool is_first = true;
  for (const Object& item : items_of(bound[0])) {
    if (!std::exchange(is_first, false)) result += separator;
    result += str_of(getter(item));
  }
  return result;
}

Object sum_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("sum", std::move(arguments), {"iterable", "attribute", "start"}, 1);
  const AttributeGetter getter(bound[1]);
  Object sum = bound.or_else(2, int64_t{0});
  for (const Object& item : items_of(bound[0])) sum = apply(Operator::add, sum, getter(item));
  return sum;
}

Object reversed(Runtime&, Arguments arguments) {
  const BoundArguments bound("reverse", std::move(arguments), {"value"}, 1);
  std::vector<Object> items = items_of(bound[0]);
  std::reverse(items.begin(), items.end());
  if (!bound[0].is_text()) return Object::sequence(std::move(items), SequenceKind::generator);
  std::string result;
  for (const Object& item : items) result += *item.text();
  return result;
}

Object batches(Runtime&, Arguments arguments) {
  const BoundArguments bound("batch", std::move(arguments), {"value", "linecount", "fill_with"}, 2);
  const int64_t count = bound.integer(1, 1);
  if (count < 1) raise("batch: linecount must be > 0");
  std::vector<Object> all, now;
  for (const Object& item : items_of(bound[0])) {
    if (static_cast<int64_t>(now.size()) == count)
      all.push_back(Object::sequence(std::exchange(now, {})));
    now.push_back(item);
  }
  if (!now.empty()) {
    if (bound.has(2) && !bound[2].is_none())
      now.resize(std::min<size_t>(static_cast<size_t>(count), 100'000), bound[2]);
    all.push_back(Object::sequence(std::move(now)));
  }
  return Object::sequence(std::move(all), SequenceKind::generator);
}

Object groups(Runtime&, Arguments arguments) {
  const BoundArguments bound("groupby", std::move(arguments),
                             {"value", "attribute", "default", "case_sensitive"}, 2);
  const AttributeGetter getter(bound[1], bound[2]);
  const bool heeds_case = bound.boolean(3, false);
  const auto key_of = [&](const Object& item) {
    return heeds_case ? getter(item) : without_case(getter(item));
  };
  std::vector<Object> all;
  Object key;
  for (const Object& item : sorted(items_of(bound[0]), {.heeds_case = heeds_case}, getter)) {
    if (all.empty() || !equals(key, key_of(item))) {
      key = key_of(item);
      all.push_back(Object::tuple({getter(item), Object::sequence({})}));
    }
    all.back().sequence()->items[1].sequence()->items.push_back(item);
  }
  return Object::sequence(std::move(all));
}

Object mapped(Runtime& runtime, Arguments arguments) {
  std::vector<Object> result;
  const Object value = arguments.positional.at(0);
  if (!is_true(value)) return Object::sequence({}, SequenceKind::generator);  // None too
  arguments.positional.erase(arguments.positional.begin());
  if (arguments.positional.empty() && !arguments.named.empty() &&
      arguments.named[0].first == "attribute") {
    const BoundArguments bound("map", std::move(arguments), {"attribute", "default"}, 1);
    const AttributeGetter getter(bound[0], bound[1]);
    for (const Object& item : items_of(value)) result.push_back(getter(item));
  } else {
    if (arguments.positional.empty() || !arguments.positional[0].is_text())
      raise("map requires a filter argument");
    const std::string filter = *arguments.positional[0].text();
    arguments.positional.erase(arguments.positional.begin());
    for (const Object& item : items_of(value))
      result.push_back(apply_filter(runtime, filter, item, arguments));
  }
  return Object::sequence(std::move(result), SequenceKind::generator);
}

template <bool keeps, bool by_attribute>
Object selected(Runtime& runtime, Arguments arguments) {
  const Object value = arguments.positional.at(0);
  if (!is_true(value)) return Object::sequence({}, SequenceKind::generator);  // None too
  arguments.positional.erase(arguments.positional.begin());
  AttributeGetter getter;
  if (by_attribute) {
    if (arguments.positional.empty()) raise("Missing parameter for attribute name");
    getter = AttributeGetter(arguments.positional[0]);
    arguments.positional.erase(arguments.positional.begin());
  }
  std::string test;
  if (!arguments.positional.empty()) {
    test = str_of(arguments.positional[0]);
    arguments.positional.erase(arguments.positional.begin());
  }
  std::vector<Object> result;
  for (const Object& item : items_of(value)) {
    const Object looked_at = getter(item);
    const bool passes =
        test.empty() ? is_true(looked_at) : apply_test(runtime, test, looked_at, arguments);
    if (passes == keeps) result.push_back(item);
  }
  return Object::sequence(std::move(result), SequenceKind::generator);
}

Object first_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("first", std::move(arguments), {"seq"}, 1);
  const std::vector<Object> items = items_of(bound[0]);
  return items.empty() ? Object::undefined("No first item, sequence was empty.") : items.front();
}

Object last_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("last", std::move(arguments), {"seq"}, 1);
  if (const Sequence* sequence = bound[0].sequence();
      sequence && sequence->kind == SequenceKind::generator)
    raise("'generator' object is not reversible");
  const std::vector<Object> items = items_of(bound[0]);
  return items.empty() ? Object::undefined("No last item, sequence was empty.") : items.back();
}

Object items_in(Runtime&, Arguments arguments) {
  const BoundArguments bound("items", std::move(arguments), {"value"}, 1);
  std::vector<Object> pairs;
  if (!bound[0].is_undefined()) {
    if (!bound[0].dict()) raise("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : bound[0].dict()->items)
      pairs.push_back(Object::tuple({key, value}));
  }
  return Object::sequence(std::move(pairs), SequenceKind::generator);
}

}  // namespace

Filter sequence_filter(std::string_view name) {
  static const std::map<std::string_view, Filter> all = {
      {"length",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("length", std::move(arguments), {"obj"}, 1);
         return length_of(bound[0]);
       }},
      {"list",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("list", std::move(arguments), {"value"}, 1);
         return Object::sequence(items_of(bound[0]));
       }},
      {"attr",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("attr", std::move(arguments), {"obj", "name"}, 2);
         const auto found = bound[0].dict() ? method_of(bound[0], bound.text(1))
                                            : std::optional(attribute_of(bound[0], bound.text(1)));
         return found ? *found
                      : Object::undefined("'" + type_name(bound[0]) +
                                          " object' has no attribute '" + bound.text(1) + "'");
       }},
      {"sort", sort_of},
      {"dictsort", dict_sort},
      {"unique", unique_of},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"join", join_of},
      {"sum", sum_of},
      {"reverse", reversed},
      {"batch", batches},
      {"groupby", groups},
      {"map", mapped},
      {"select", selected<true, false>},
      {"reject", selected<false, false>},
      {"selectattr", selected<true, true>},
      {"rejectattr", selected<false, true>},
      {"first", first_of},
      {"last", last_of},
      {"items", items_in},
  };
  if (name == "count") name = "length";
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace titan::jinja
