#include <titan/files/pickle.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/files/pickle_writer.h>

namespace titan {
namespace {

// Opcodes of Python's Lib/pickletools.py.
enum Opcode : char {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kNewTrue = '\x88',
  kNewFalse = '\x89',
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = '\x8a',
  kDouble = 'G',
  kText4 = 'X',
  kText1 = '\x8c',
  kText8 = '\x8d',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kTuple = 't',
  kTuple1 = '\x85',
  kTuple2 = '\x86',
  kTuple3 = '\x87',
  kProtocol = '\x80',
  kFrame = '\x95',
  kMemoize = '\x94',
  kPut1 = 'q',
  kPut4 = 'r',
  kGet1 = 'h',
  kGet4 = 'j',
};

constexpr int kMostLevels = 100;

void put(const Value& value, PickleWriter& out) {
  switch (value.type()) {
    case Value::Type::null:
      out.put_null();
      break;
    case Value::Type::boolean:
      out.put(value.as_boolean());
      break;
    case Value::Type::integer:
      out.put(value.as_integer());
      break;
    case Value::Type::number:
      out.put(value.as_number());
      break;
    case Value::Type::string:
      out.put(std::string_view(value.as_string()));
      break;
    case Value::Type::list: {
      const Value::List& items = value.as_list();
      out.list(items.size(), [&](size_t i) { put(items[i], out); });
      break;
    }
    case Value::Type::map: {
      const Value::Map& members = value.as_map();
      out.map(members.size(), [&](size_t i) {
        out.put(std::string_view(members[i].first));
        put(members[i].second, out);
      });
      break;
    }
  }
}

/// The stack machine that runs a pickle, without the opcodes that make objects.
class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {}

  Value read() {
    while (true) {
      const size_t offset = position_;
      const char opcode = take(1)[0];
      if (opcode == kStop) break;
      step(opcode, offset);
    }
    TITAN_CHECK(stack_.size() == 1 && marks_.empty(), data, "the pickle ends with ", stack_.size(),
                " values instead of one");
    return std::move(stack_.front().value);
  }

 private:
  struct Item {
    Value value;
    int levels = 0;  // of nesting inside the value
  };

  void step(char opcode, size_t offset) {
    switch (opcode) {
      case kProtocol:
        take(1);
        break;
      case kFrame:
        take(8);
        break;
      case kMark:
        marks_.push_back(stack_.size());
        break;
      case kNone:
        push(Value());
        break;
      case kNewTrue:
        push(true);
        break;
      case kNewFalse:
        push(false);
        break;
      case kInt1:
        push(int64_t{number<uint8_t>()});
        break;
      case kInt2:
        push(int64_t{number<uint16_t>()});
        break;
      case kInt4:
        push(int64_t{number<int32_t>()});
        break;
      case kLong1:
        push(long_integer(number<uint8_t>(), offset));
        break;
      case kDouble: {
        uint64_t bits = 0;
        for (const char byte : take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
        push(std::bit_cast<double>(bits));
        break;
      }
      case kText1:
        push(std::string(take(number<uint8_t>())));
        break;
      case kText4:
        push(std::string(take(number<uint32_t>())));
        break;
      case kText8:
        push(std::string(take(number<uint64_t>())));
        break;
      case kEmptyDict:
        push(Value::map());
        break;
      case kEmptyList:
      case kEmptyTuple:
        push(Value::list());
        break;
      case kAppend:
        append(stack_.size() - 1, offset);
        break;
      case kAppends:
        append(mark(offset), offset);
        break;
      case kSetItem:
        set_items(stack_.size() - 2, offset);
        break;
      case kSetItems:
        set_items(mark(offset), offset);
        break;
      case kTuple:
        tuple(mark(offset), offset);
        break;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        tuple(stack_.size() - static_cast<size_t>(opcode - kTuple1 + 1), offset);
        break;
      case kMemoize:
        remember(static_cast<uint32_t>(memory_.size()), offset);
        break;
      case kPut1:
        remember(number<uint8_t>(), offset);
        break;
      case kPut4:
        remember(number<uint32_t>(), offset);
        break;
      case kGet1:
        recall(number<uint8_t>(), offset);
        break;
      case kGet4:
        recall(number<uint32_t>(), offset);
        break;
      default:
        fail_at(offset, "is not plain data");
    }
  }

  [[noreturn]] static void fail_at(size_t offset, const char* what) {
    fail(ErrorKind::data, "the pickle ", what, " at byte ", offset);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - position_) fail_at(position_, "is cut short");
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  /// Little endian, two's complement, of any length.
  int64_t long_integer(uint8_t length, size_t offset) {
    const std::string_view digits = take(length);
    if (length > 8) fail_at(offset, "holds a number above 64 bits");
    const bool is_negative = length > 0 && static_cast<uint8_t>(digits.back()) >= 128;
    uint64_t value = is_negative ? ~uint64_t{0} : 0;
    for (size_t i = length; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    return static_cast<int64_t>(value);
  }

  void push(Value value) { stack_.push_back({std::move(value)}); }

  /// The index of the first value after the last mark.
  size_t mark(size_t offset) {
    if (marks_.empty() || marks_.back() > stack_.size()) fail_at(offset, "misses a mark");
    const size_t first = marks_.back();
    marks_.pop_back();
    return first;
  }

  /// The container below `first`, which gets the values from there on.
  Item& container(size_t first, Value::Type type, size_t offset) {
    // a count below zero has wrapped around
    if (first == 0 || first > stack_.size() || stack_[first - 1].value.type() != type)
      fail_at(offset, "adds to a value that is not a container");
    return stack_[first - 1];
  }
  void contain(Item& outer, const Item& inner, size_t offset) const {
    outer.levels = std::max(outer.levels, inner.levels + 1);
    if (outer.levels > kMostLevels) fail_at(offset, "is nested too deep");
  }

  void append(size_t first, size_t offset) {
    Item& list = container(first, Value::Type::list, offset);
    for (size_t i = first; i < stack_.size(); ++i) {
      contain(list, stack_[i], offset);
      list.value.as_list().push_back(std::move(stack_[i].value));
    }
    stack_.resize(first);
  }

  void set_items(size_t first, size_t offset) {
    Item& map = container(first, Value::Type::map, offset);
    if ((stack_.size() - first) % 2 != 0) fail_at(offset, "has a key without a value");
    for (size_t i = first; i < stack_.size(); i += 2) {
      contain(map, stack_[i + 1], offset);
      const Value& key = stack_[i].value;
      map.value.as_map().emplace_back(key.is_string() ? key.as_string() : to_json(key),
                                      std::move(stack_[i + 1].value));
    }
    stack_.resize(first);
  }

  void tuple(size_t first, size_t offset) {
    if (first > stack_.size()) fail_at(offset, "misses the items of a tuple");
    Item made{Value::list()};
    for (size_t i = first; i < stack_.size(); ++i) {
      contain(made, stack_[i], offset);
      made.value.as_list().push_back(std::move(stack_[i].value));
    }
    stack_.resize(first);
    stack_.push_back(std::move(made));
  }

  /// Only texts and numbers can be read from memory again: other values are still being filled, and
  /// copying them each time could turn a small file into a large tree.
  void remember(uint32_t place, size_t offset) {
    if (stack_.empty()) fail_at(offset, "remembers nothing");
    const Value& value = stack_.back().value;
    memory_[place] = value.is_list() || value.is_map() ? std::nullopt : std::optional(value);
  }
  void recall(uint32_t place, size_t offset) {
    const auto found = memory_.find(place);
    if (found == memory_.end() || !found->second)
      fail_at(offset, "refers to a value that is not text or a number");
    push(*found->second);
  }

  std::string_view bytes_;
  size_t position_ = 0;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, std::optional<Value>> memory_;
};

}  // namespace

std::string to_pickle(const Value& value) {
  PickleWriter out;
  put(value, out);
  return out.finish();
}

Value parse_pickle(std::string_view bytes) {
  return Unpickler(bytes).read();
}

}  // namespace titan
