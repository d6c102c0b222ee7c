// Pickles: bytes written by Python's pickle.dumps, and hostile ones. end_to_end.flight shows that
// Python reads Titan's pickles.

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/files/pickle.h>

#include "tests/plugins/error_of.h"

namespace titan {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

std::string bytes(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

Value some_of_everything() {
  Value list = Value::list();
  for (int64_t i = 0; i < 2500; ++i) list.as_list().push_back(i);
  return Value::map({{"none", Value()},
                     {"yes", true},
                     {"no", false},
                     {"numbers", Value::list({0, 255, 256, -1, 70000, int64_t{1} << 40,
                                              std::numeric_limits<int64_t>::min()})},
                     {"pi", 3.141592653589793},
                     {"text", "na\xc3\xafve"},
                     {"empty", Value::list({Value::map(), Value::list(), ""})},
                     {"long", std::move(list)}});
}

TEST(Pickle, ReadsWhatItHasWritten) {
  EXPECT_EQ(parse_pickle(to_pickle(some_of_everything())), some_of_everything());
}

TEST(Pickle, ReadsWhatPythonWrites) {
  // pickle.dumps({"a": [1, -2, 300, 2**40], "b": (True, None, 0.5), "c": "ä"}, protocol=p)
  const Value expected = Value::map({{"a", Value::list({1, -2, 300, int64_t{1} << 40})},
                                     {"b", Value::list({true, Value(), 0.5})},
                                     {"c", "\xc3\xa4"}});
  for (const char* hex :
       {"80027d71002858010000006171015d7102284b014afeffffff4d2c018a06000000000001655801000000627103"
        "884e473fe000000000000087710458010000006371055802000000c3a47106752e",
        "80049539000000000000007d94288c0161945d94284b014afeffffff4d2c018a06000000000001658c016294"
        "884e473fe000000000000087948c0163948c02c3a494752e"})
    EXPECT_EQ(parse_pickle(bytes(hex)), expected) << hex;
}

TEST(Pickle, RefusesWhatIsNoPlainData) {
  // a pickle that would run os.system("true")
  EXPECT_TRUE(holds(error_of([] { parse_pickle("cposix\nsystem\n(S'true'\ntR."); }).message(),
                    "is not plain data at byte 0"));
  EXPECT_TRUE(holds(error_of([] { parse_pickle(""); }).message(), "is cut short at byte 0"));
  EXPECT_TRUE(holds(error_of([] {
                      parse_pickle(
                          "X\xff\xff\xff\xff"
                          "abc.");
                    }).message(),
                    "is cut short"));
  EXPECT_TRUE(holds(error_of([] { parse_pickle("K\1K\2."); }).message(), "ends with 2 values"));
  EXPECT_TRUE(holds(error_of([] { parse_pickle("."); }).message(), "ends with 0 values"));
  for (const char* odd : {"a.", "s.", "e.", "u.", "t.", "K\1a.", "]a.", "K\1K\2s.", "}(K\1u.",
                          "\x87.", "q\1.", "h\1.", "](K\1.",
                          "\x8a\x09"
                          "123456789."})
    EXPECT_EQ(error_of([&] { parse_pickle(odd); }).kind(), ErrorKind::data) << odd;
  std::string deep(100000, ']');
  deep += std::string(99999, 'a') + ".";
  EXPECT_TRUE(holds(error_of([&] { parse_pickle(deep); }).message(), "is nested too deep"));
  // a list that holds itself twice, and so on: each level would double the tree
  std::string bomb = "]q";
  bomb += '\0';
  bomb += std::string("h\0a", 3);
  EXPECT_TRUE(holds(error_of([&] { parse_pickle(bomb + "."); }).message(),
                    "refers to a value that is not text or a number"));
}

}  // namespace
}  // namespace titan
