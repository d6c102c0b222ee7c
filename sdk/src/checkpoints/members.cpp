#include <titan/checkpoints/members.h>

#include <utility>

#include <titan/error.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

std::string with_article(Value::Type type) {
  return std::string(type == Value::Type::integer ? "an " : "a ") + titan::to_string(type);
}

/// A value of an unexpected type, for messages: "the string 'x'", "a list".
std::string described(const Value& value) {
  if (value.is_null() || value.is_list() || value.is_map()) return with_article(value.type());
  return std::string("the ") + titan::to_string(value.type()) + " " +
         (value.is_string() ? in_quotes(value.as_string()) : to_json(value));
}

}  // namespace

Members::Members(const Value& value, const std::string& place, std::string path)
    : value_(value), place_(place), path_(std::move(path)) {
  if (!value.is_map())
    fail(ErrorKind::data, "cannot read ", place, ": ",
         path_.empty() ? "it" : path_.substr(0, path_.size() - 1), " is ", described(value),
         ", but must be a map");
}

void Members::refuse(const char* name, const std::string& what) const {
  fail(ErrorKind::data, "cannot read ", place_, ": ", path_, name, " ", what);
}

const Value& Members::at(const char* name, Value::Type type) const {
  const Value* found = value_.find(name);
  if (!found) refuse(name, "is missing");
  if (found->type() != type)
    refuse(name, "is " + described(*found) + ", but must be " + with_article(type));
  return *found;
}

const std::string& Members::text(const char* name) const {
  return at(name, Value::Type::string).as_string();
}

int64_t Members::integer(const char* name, int64_t least) const {
  const int64_t number = at(name, Value::Type::integer).as_integer();
  if (number < least)
    refuse(name,
           "is " + std::to_string(number) + ", but must be at least " + std::to_string(least));
  return number;
}

double Members::number(const char* name) const {
  const Value* found = value_.find(name);
  return found && found->is_integer() ? found->as_number()
                                      : at(name, Value::Type::number).as_number();
}

Members Members::map(const char* name) const {
  return Members(at(name, Value::Type::map), place_, path_ + name + ".");
}

const Value::List& Members::list(const char* name) const {
  return at(name, Value::Type::list).as_list();
}

Members Members::in_list(const char* name, size_t index) const {
  return Members(list(name).at(index), place_, path_ + name + "[" + std::to_string(index) + "].");
}

}  // namespace titan
