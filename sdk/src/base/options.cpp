#include <titan/options.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

namespace titan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1024.0},
                               {"MiB", 1048576.0},
                               {"GiB", 1073741824.0},
                               {"TiB", 1099511627776.0}};
constexpr Unit kTimeUnits[] = {{"", 1},     {"ms", 1e-3}, {"s", 1},
                               {"min", 60}, {"h", 3600},  {"d", 86400}};

/// The number of "64 MiB" with the given units; absent if the text has another form.
std::optional<double> parse_quantity(const Value& value, std::span<const Unit> units) {
  if (value.is_integer() || value.is_number()) return value.as_number();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.as_string();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, text.data() + text.size() - end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units)
    if (known.name == unit) return number * known.factor;
  return std::nullopt;
}

std::string quoted(const Value& value) {
  return value.is_string() ? "'" + value.as_string() + "'" : to_json(value);
}

/// A whole number without an exponent, as in a configuration.
std::string number_text(double number) {
  constexpr double kMostDigits = 1e15;
  char buffer[32];
  char* const end = buffer + sizeof buffer;
  if (std::abs(number) < kMostDigits && number == std::trunc(number))
    return std::string(buffer, std::to_chars(buffer, end, static_cast<int64_t>(number)).ptr);
  return std::string(buffer, std::to_chars(buffer, end, number).ptr);
}

std::string with_article(const std::string& noun) {
  return (std::string_view("aeiou").find(noun.front()) != std::string_view::npos ? "an " : "a ") +
         noun;
}

std::string words(const std::vector<std::string>& choices) {
  std::string text;
  for (const std::string& choice : choices) text += (text.empty() ? "'" : ", '") + choice + "'";
  return text;
}

std::string choices_text(const Option& option) {
  return words(option.choices) + (option.may_be_unset ? " or 'None'" : "");
}

std::string bounds_text(const Option& option) {
  const auto one = [](const char* strict, const char* inclusive, const Option::Bound& bound) {
    return std::string(bound.inclusive ? inclusive : strict) + " " + number_text(bound.value);
  };
  if (option.lower && option.upper && option.lower->inclusive && option.upper->inclusive)
    return "between " + number_text(option.lower->value) + " and " +
           number_text(option.upper->value);
  std::string text;
  if (option.lower) text = one(">", ">=", *option.lower);
  if (option.upper) text += (text.empty() ? "" : " and ") + one("<", "<=", *option.upper);
  return text;
}

bool within_bounds(const Option& option, double number) {
  if (option.lower &&
      !(option.lower->inclusive ? number >= option.lower->value : number > option.lower->value))
    return false;
  if (option.upper &&
      !(option.upper->inclusive ? number <= option.upper->value : number < option.upper->value))
    return false;
  return true;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string type_problem(const Option& option, const Value& value) {
  return "must be " + with_article(option.allowed()) + ", got " + quoted(value);
}

/// The value as a number to compare with the bounds; absent if it does not have the option's type.
std::optional<double> measure(const Option& option, const Value& value) {
  switch (option.type) {
    case OptionType::integer:
      return value.is_integer() ? std::optional(value.as_number()) : std::nullopt;
    case OptionType::number:
      return value.is_integer() || value.is_number() ? std::optional(value.as_number())
                                                     : std::nullopt;
    case OptionType::bytes: {
      const auto bytes = parse_quantity(value, kByteUnits);
      return bytes && *bytes >= 0 && *bytes < 9.2e18 ? bytes : std::nullopt;
    }
    default:
      return parse_quantity(value, kTimeUnits);
  }
}

}  // namespace

const char* to_string(OptionType type) {
  constexpr const char* kNames[] = {"boolean", "integer", "number",   "string", "enumeration",
                                    "path",    "bytes",   "duration", "list",   "table"};
  return kNames[static_cast<int>(type)];
}

namespace detail {
int64_t parse_bytes(const Value& value) {
  const auto bytes = parse_quantity(value, kByteUnits);
  TITAN_CHECK(bytes, config, "not a size: ", quoted(value));
  return static_cast<int64_t>(*bytes);
}
double parse_duration(const Value& value) {
  const auto seconds = parse_quantity(value, kTimeUnits);
  TITAN_CHECK(seconds, config, "not a time span: ", quoted(value));
  return *seconds;
}

#define TITAN_MADE_HERE(T) template TITAN_API const MemberType& member_type<T>();
TITAN_MEMBER_TYPES(TITAN_MADE_HERE)
#undef TITAN_MADE_HERE

void own(Schema& schema, const OwnerType& owner) {
  if (schema.owner == typeid(void)) {
    schema.owner = owner.type;
    schema.prototype = owner.make();
    schema.clone = owner.clone;
  }
  TITAN_CHECK(schema.owner == owner.type, plugin,
              "options of two different structs were declared for one component: ",
              schema.owner.name(), " and ", owner.type.name());
}

const void* SchemaCalls::owned_by(const OwnerType& owner) const {
  own(*schema_, owner);
  return schema_->prototype.get();
}

Option& SchemaCalls::add(std::string_view name, std::string_view help, size_t offset,
                         const MemberType& type) {
  TITAN_CHECK(!schema_->find(name), plugin, "option '", name, "' is declared twice");
  Option& option = schema_->options.emplace_back();
  option.name = name;
  option.help = help;
  option.offset = offset;
  option.member = &type;
  type.describe(option);
  return option;
}

Option& SchemaCalls::add_table(std::string_view name, std::string_view help, size_t offset,
                               const OwnerType& inner) {
  static constexpr MemberType kTable = {[](Option& option) { option.type = OptionType::table; },
                                        nullptr, nullptr};
  Option& option = add(name, help, offset, kTable);
  option.table = std::make_shared<Schema>();
  option.table->owner = inner.type;
  option.table->clone = inner.clone;
  option.table->prototype =
      inner.clone(static_cast<const char*>(schema_->prototype.get()) + offset);
  return option;
}

void SchemaCalls::finish(Option& option) const {
  option.default_value = option.read(schema_->prototype.get());
}

/// A list's constraints are its items' constraints.
Option& SchemaCalls::target() {
  TITAN_CHECK(!schema_->options.empty(), plugin, "a constraint precedes the first option");
  Option& last = schema_->options.back();
  return last.element ? *last.element : last;
}

void SchemaCalls::follow(std::string_view core_key,
                         std::function<Value(const Value& core, const JobView& job)> feed) {
  Option& last = schema_->options.back();
  last.fed_by = core_key;
  last.feed = std::move(feed);
}

void SchemaCalls::bound(std::optional<Option::Bound> Option::*side, double value, bool inclusive) {
  target().*side = Option::Bound{value, inclusive};
}

void SchemaCalls::allow_only(std::vector<std::string> words) {
  target().choices = std::move(words);
}

void SchemaCalls::allow_only(std::initializer_list<const char*> words) {
  target().choices.assign(words.begin(), words.end());
}
}  // namespace detail

void Option::assign(void* options, const Value& value) const {
  void* place = static_cast<char*>(options) + offset;
  if (type == OptionType::table) {
    table->assign(place, value);
  } else if (type == OptionType::enumeration) {
    const auto word = std::find(choices.begin(), choices.end(), value.as_string());
    if (word != choices.end())
      member->assign(place, meanings[static_cast<size_t>(word - choices.begin())]);
  } else {
    member->assign(place, value);
  }
}

Value Option::read(const void* options) const {
  const void* place = static_cast<const char*>(options) + offset;
  if (type == OptionType::table) return table->read(place);
  if (type != OptionType::enumeration) return member->read(place);
  const auto meaning =
      std::find(meanings.begin(), meanings.end(), member->read(place).as_integer());
  return meaning == meanings.end()
             ? Value()
             : Value(choices[static_cast<size_t>(meaning - meanings.begin())]);
}

std::string Option::allowed() const {
  switch (type) {
    case OptionType::list:
      return "list of " + element->allowed();
    case OptionType::bytes:
      return "size (bytes, or with a unit such as '64MiB')" +
             (lower || upper ? " " + bounds_text(*this) : "");
    case OptionType::duration:
      return "duration (seconds, or with a unit such as '250ms')" +
             (lower || upper ? " " + bounds_text(*this) : "");
    default:
      break;
  }
  if (!choices.empty()) return "word, one of " + choices_text(*this);
  std::string text = to_string(type);
  if (lower || upper) text += " " + bounds_text(*this);
  return text;
}

bool Option::means_unset(std::string_view word) const {
  if (!may_be_unset) return false;
  const bool takes_every_word =
      choices.empty() && (type == OptionType::string || type == OptionType::path);
  return takes_every_word ? word == "None" : equal_ignoring_case(word, "None");
}

std::optional<std::string> Option::problem(const Value& value) const {
  if (value.is_null()) {
    if (may_be_unset) return std::nullopt;
    return "must be " + with_article(allowed()) + " and cannot be unset";
  }
  switch (type) {
    case OptionType::boolean:
      return value.is_boolean() ? std::nullopt : std::optional(type_problem(*this, value));
    case OptionType::integer:
    case OptionType::number:
    case OptionType::bytes:
    case OptionType::duration: {
      const auto number = measure(*this, value);
      if (!number) return type_problem(*this, value);
      if (!std::isfinite(*number)) return "must be finite, got " + number_text(*number);
      if (!within_bounds(*this, *number))
        return "must be " + bounds_text(*this) + ", got " + quoted(value);
      return std::nullopt;
    }
    case OptionType::string:
    case OptionType::enumeration:
    case OptionType::path: {
      if (!value.is_string()) return type_problem(*this, value);
      if (choices.empty()) return std::nullopt;
      for (const std::string& choice : choices)
        if (choice == value.as_string() ||
            (ignores_case && equal_ignoring_case(choice, value.as_string())))
          return std::nullopt;
      return "must be one of " + choices_text(*this) + ", got " + quoted(value);
    }
    case OptionType::list:
      if (!value.is_list()) return type_problem(*this, value);
      for (const Value& item : value.as_list())
        if (const auto wrong = element->problem(item)) return "has an item that " + *wrong;
      return std::nullopt;
    case OptionType::table:
      return value.is_map() ? std::nullopt : std::optional(type_problem(*this, value));
  }
  return std::nullopt;
}

const Option* Schema::find(std::string_view name) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

std::shared_ptr<void> Schema::make(const Value& values) const {
  if (!prototype) return nullptr;
  std::shared_ptr<void> made = clone(prototype.get());
  assign(made.get(), values);
  return made;
}

void Schema::assign(void* target, const Value& values) const {
  if (values.is_null()) return;
  for (const auto& [name, value] : values.as_map()) {
    const Option* option = find(name);
    TITAN_CHECK(option, config, "unknown option '", name, "'");
    const auto wrong = option->problem(value);
    TITAN_CHECK(!wrong, config, "option '", name, "' ", *wrong);
    option->assign(target, value);
  }
}

Value Schema::read(const void* source) const {
  Value::Map members;
  for (const Option& option : options) members.emplace_back(option.name, option.read(source));
  return members;
}

}  // namespace titan
