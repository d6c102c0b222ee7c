// titan/checkpoints/safetensors.h: every refusal; files survive writing and reading.

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/checkpoints/safetensors.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/checkpoints/shards.h"

namespace titan {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;

const std::string kTensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";

SafetensorsHeader parse(const std::string& file) {
  return parse_header(file, static_cast<int64_t>(file.size()), "w.safetensors");
}

struct Refusal {
  std::string header;
  std::string data;
  std::string part;  // of the message
};

void expect_refused(const std::string& file, const std::string& part) {
  const Error error = error_of([&] { parse(file); });
  EXPECT_EQ(error.kind(), ErrorKind::data) << part;
  EXPECT_TRUE(holds(error.message(), "w.safetensors"));
  EXPECT_TRUE(holds(error.message(), part));
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const SafetensorsHeader header = parse(raw_file(
      R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"__metadata__":{"k":"v","":""},)"
      R"("scalar":{"shape":[],"data_offsets":[0,4],"dtype":"F32"},)"
      R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]}}   )",
      pattern(16)));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "scalar");
  EXPECT_EQ(header.tensors[1].name, "none");
  EXPECT_EQ(header.tensors[2].name, "b");
  EXPECT_EQ(header.tensors[2].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[2].begin, 4);
  EXPECT_EQ(header.tensors[2].end, 16);
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"k", "v"}, {"", ""}}));
  EXPECT_NE(header.data_start % 8, 0) << "unpadded headers are read too";
  ASSERT_NE(header.find("b"), nullptr);
  EXPECT_EQ(header.find("b")->dtype, "BF16");
  EXPECT_EQ(header.find("c"), nullptr);
}

TEST(Safetensors, ReadsFilesWithoutTensors) {
  EXPECT_TRUE(parse(raw_file("{}")).tensors.empty());
  EXPECT_TRUE(parse(raw_file(R"({"__metadata__":null})")).metadata.empty());
  EXPECT_TRUE(parse(raw_file(R"({"__metadata__":{}})")).metadata.empty());
}

TEST(Safetensors, RefusesHeadersThatCannotBe) {
  expect_refused("", "it has 0 bytes, but a safetensors file starts with a length of 8");
  expect_refused("1234567", "it has 7 bytes");
  expect_refused(std::string("\x10\0\0\0\0\0\0\0", 8) + "{}",
                 "its header has 16 bytes, but the whole file has 10");
  std::string huge = raw_file("{}");
  huge[3] = 0x0C;  // 200 MB and more
  expect_refused(huge, "its header has 201326594 bytes, the format allows 100000000");
  expect_refused(std::string(8, '\xFF') + "{}",
                 "its header has 18446744073709551615 bytes, the format allows 100000000");
  // the file is long enough, but the buffer of its bytes is not
  const Error error = error_of([&] { parse_header(raw_file("{}").substr(0, 9), 10, "w"); });
  EXPECT_EQ(error.message(), "cannot read w: its header ends after 1 of 2 bytes");
  // a header of 200 MB in a file that is large enough for it
  std::string claim = raw_file(std::string(16, ' '));
  claim[0] = 0, claim[3] = 0x0C;
  EXPECT_TRUE(holds(error_of([&] { parse_header(claim, int64_t{1} << 40, "w"); }).message(),
                    "its header has 201326592 bytes, the format allows 100000000"));
}

TEST(Safetensors, RefusesTextThatIsNoJsonOfTheForm) {
  const std::string t = kTensor;
  const Refusal refusals[] = {
      {"", "", "its header does not start with '{'"},
      {" {}", "", "its header does not start with '{'"},
      {"[]", "", "its header does not start with '{'"},
      {"\xEF\xBB\xBF{}", "", "its header does not start with '{'"},
      {"{", "", "malformed JSON"},
      {"{}x", "", "malformed JSON"},
      {std::string("{}\0x", 4), "", "there is a zero byte at byte 2 of the JSON"},
      {std::string("{\0\"\0a\0\"\0", 8), "", "of the JSON; it looks like UTF-16: save it as UTF-8"},
      {"{\"a\xFF\":" + t + "}", "1234", "malformed JSON"},
      {"{\"a\xC0\x80\":" + t + "}", "1234", "malformed JSON"},
      {"{\"\\ud800\":" + t + "}", "1234", "malformed JSON"},
      {"{\"a\":" + t + ",}", "1234", "malformed JSON"},
      {"{'a':1}", "", "malformed JSON"},
      {"{\"a\":NaN}", "", "malformed JSON"},
      {"{/**/}", "", "malformed JSON"},
      {"{\"a\":1}", "", "tensor 'a': the number 1 is not allowed here"},
      {"{\"a\":null}", "", "tensor 'a': null"},
      {"{\"a\":[]}", "", "tensor 'a': a list"},
      {"{\"a\":\"x\"}", "", "tensor 'a': a string"},
      {"{\"a\":{}}", "", "tensor 'a': it has no dtype"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", "", "tensor 'a': it has no data_offsets"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "1234", "tensor 'a': it has no shape"},
      {R"({"a":{"dtype":"F32","dtype":"F32"}})", "", "tensor 'a': it has dtype twice"},
      {R"({"a":{"strides":[1]}})", "", "tensor 'a': it has an unknown member 'strides'"},
      {R"({"a":{"dtype":32}})", "", "tensor 'a': dtype: the number 32"},
      {R"({"a":{"dtype":{}}})", "", "tensor 'a': dtype: an object"},
      {R"({"a":{"shape":4}})", "", "tensor 'a': shape: the number 4"},
      {R"({"a":{"shape":"4"}})", "", "tensor 'a': shape: a string"},
      {R"({"a":{"shape":[[4]]}})", "", "tensor 'a': shape[0]: a list"},
      {R"({"a":{"shape":[true]}})", "", "tensor 'a': shape[0]: a boolean"},
      {R"({"a":{"shape":[-1]}})", "",
       "tensor 'a': shape[0]: the negative number -1 is not allowed"},
      {R"({"a":{"shape":[2,-0]}})", "",
       "tensor 'a': shape[1]: the negative number -0 is not allowed"},
      {R"({"a":{"shape":[1.0]}})", "", "shape[0]: the number 1.0, which is not an integer of 64"},
      {R"({"a":{"shape":[1e0]}})", "", "shape[0]: the number 1e0, which is not an integer of 64"},
      {R"({"a":{"shape":[18446744073709551616]}})", "", "the number 18446744073709551616, which"},
      {R"({"a":{"shape":[9223372036854775808]}})", "",
       "shape[0]: the number 9223372036854775808 is beyond 64"},
      {R"({"a":{"data_offsets":[-8,0]}})", "",
       "data_offsets[0]: the negative number -8 is not allowed"},
      {R"({"a":{"data_offsets":[0,-4]}})", "",
       "data_offsets[1]: the negative number -4 is not allowed"},
      {R"({"a":{"data_offsets":-4}})", "", "data_offsets: the negative number -4 is not allowed"},
      {R"({"a":{"data_offsets":[0]}})", "", "tensor 'a': data_offsets must have 2 numbers"},
      {R"({"a":{"data_offsets":[]}})", "", "tensor 'a': data_offsets must have 2 numbers"},
      {R"({"a":{"data_offsets":[0,4,8]}})", "", "data_offsets has more than 2 numbers"},
      {R"({"__metadata__":[]})", "", "__metadata__: a list"},
      {R"({"__metadata__":"x"})", "", "__metadata__: a string"},
      {R"({"__metadata__":{"a":1}})", "", "__metadata__: 'a': the number 1"},
      {R"({"__metadata__":{"a":null}})", "", "__metadata__: 'a': null"},
      {R"({"__metadata__":{"a":{}}})", "", "__metadata__: 'a': an object"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "", "__metadata__: the name 'a' occurs twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "__metadata__ occurs twice"},
      {std::string(100'000, '[') + std::string(100'000, ']'), "", "does not start with '{'"},
      {"{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", "",
       "tensor 'a': a list"},
  };
  for (const Refusal& refusal : refusals)
    expect_refused(raw_file(refusal.header, refusal.data), refusal.part);
}

TEST(Safetensors, RefusesTensorsWhoseBytesCannotBeWhereTheHeaderSays) {
  const auto entry = [](const std::string& name, const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
           "],\"data_offsets\":[" + offsets + "]}";
  };
  const std::string a = entry("a", "F32", "1", "0,4");
  const Refusal refusals[] = {
      {"{" + entry("a", "F33", "1", "0,4") + "}", "1234", "unknown type 'F33'"},
      {"{" + entry("a", "f32", "1", "0,4") + "}", "1234", "unknown type 'f32'"},
      {"{" + entry("a", "F32", "1", "4,0") + "}", "", "ends before it begins"},
      {"{" + entry("a", "F32", "2", "0,4") + "}", "1234",
       "tensor 'a' at bytes 0 to 4 does not fit its type and shape, which take 8 bytes"},
      {"{" + entry("a", "F64", "", "0,4") + "}", "1234", "which take 8 bytes"},
      {"{" + entry("a", "F4", "3", "0,2") + "}", "12", "which is not a whole number of bytes"},
      {"{" + entry("a", "F6_E2M3", "3", "0,2") + "}", "12", "not a whole number of bytes"},
      {"{" + entry("a", "F32", "4611686018427387904,4", "0,0") + "}", "",
       "the shape's product is beyond 64 bits"},
      {"{" + entry("a", "F32", "4294967296,4294967296", "0,0") + "}", "", "beyond 64 bits"},
      {"{" + entry("a", "U8", "1152921504606846976,2", "0,4") + "}", "1234", "beyond 64 bits"},
      {"{" + a + "," + a + "}", "1234", "tensor 'a' occurs twice"},
      {"{" + a + "," + entry("b", "F32", "1", "0,4") + "}", "1234",
       "tensor 'b' at bytes 0 to 4 overlaps tensor 'a' at bytes 0 to 4"},
      {"{" + a + "," + entry("b", "F32", "1", "2,6") + "}", "123456", "overlaps tensor 'a'"},
      {"{" + a + "," + entry("b", "F32", "1", "8,12") + "}", "123456789abc",
       "bytes 4 to 8 belong to no tensor; the next is tensor 'b' at bytes 8 to 12"},
      {"{" + entry("b", "F32", "1", "4,8") + "}", "12345678", "bytes 0 to 4 belong to no tensor"},
      {"{" + a + "}", "12345", "the last 1 bytes belong to no tensor"},
      {"{}", "x", "the last 1 bytes belong to no tensor"},
      {"{" + a + "," + entry("b", "F32", "1", "4,8") + "}", "12345",
       "it is cut off in tensor 'b' at bytes 4 to 8: 5 of 8 bytes of data are there"},
      {"{" + a + "}", "", "it is cut off in tensor 'a'"},
      {"{" + entry("a", "U8", "9223372036854775807", "0,9223372036854775807") + "}", "1",
       "beyond 64 bits"},
      {"{" + entry("a", "U8", "1152921504606846975", "0,1152921504606846975") + "}", "1",
       "it is cut off in tensor 'a'"},
  };
  for (const Refusal& refusal : refusals)
    expect_refused(raw_file(refusal.header, refusal.data), refusal.part);
}

TEST(Safetensors, RefusesMoreDimensionsThanAnyTensorHas) {
  const auto file = [](int dims) {
    std::string ones = "1";
    for (int i = 1; i < dims; ++i) ones += ",1";
    return raw_file(R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})", "x");
  };
  EXPECT_EQ(parse(file(64)).tensors.front().shape.size(), 64u);
  expect_refused(file(65), "tensor 'a': its shape has more than 64 dimensions");
}

TEST(Safetensors, ShowsStrangeNamesWithoutTheirControlCharacters) {
  expect_refused(raw_file(R"({"\u001b[2J\n":1})"), "tensor '\\x1b[2J\\x0a': the number 1");
  expect_refused(raw_file("{\"" + std::string(100'000, 'n') + "\":1}"),
                 "'" + std::string(200, 'n') + "...'");
}

TEST(Safetensors, KnowsTheSizesOfAllTypes) {
  for (const char* dtype :
       {"U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"})
    EXPECT_EQ(bits_of(dtype), 8) << dtype;
  for (const char* dtype : {"I16", "U16", "F16", "BF16"}) EXPECT_EQ(bits_of(dtype), 16) << dtype;
  for (const char* dtype : {"I32", "U32", "F32"}) EXPECT_EQ(bits_of(dtype), 32) << dtype;
  for (const char* dtype : {"I64", "U64", "F64", "C64"}) EXPECT_EQ(bits_of(dtype), 64) << dtype;
  EXPECT_EQ(bits_of("F4"), 4);
  EXPECT_EQ(bits_of("F6_E2M3"), 6);
  EXPECT_EQ(bits_of("F6_E3M2"), 6);
  EXPECT_EQ(bits_of("C128"), 0);
  EXPECT_EQ(bits_of(""), 0);

  EXPECT_EQ(num_bytes("F32", {}, "here"), 4);
  EXPECT_EQ(num_bytes("F32", {3, 0}, "here"), 0);
  EXPECT_EQ(num_bytes("F6_E2M3", {4}, "here"), 3);
  EXPECT_EQ(num_bytes("BF16", {1 << 20, 1 << 20}, "here"), int64_t{1} << 41);
  EXPECT_EQ(error_of([] {
              num_bytes("F32", {2, -1}, "here");
            }).message(),
            "negative size -1 of dimension 1 in here");
  // also when a later 0 hides the overflow: no reader accepts such a shape
  EXPECT_TRUE(holds(error_of([] {
                      const int64_t most = std::numeric_limits<int64_t>::max();
                      num_bytes("F32", {most, most, 0}, "here");
                    }).message(),
                    "beyond 64 bits"));
}

TEST(Safetensors, PlacesWiderTypesFirstThenByName) {
  std::vector<TensorEntry> tensors{{"b", "BF16", {3}}, {"z", "I64", {}},   {"a", "F32", {2, 2}},
                                   {"A", "F32", {1}},  {"c", "BOOL", {5}}, {"e", "F32", {0}}};
  lay_out(tensors);
  std::string order;
  for (const TensorEntry& tensor : tensors) order += tensor.name;
  EXPECT_EQ(order, "zAaebc");
  int64_t position = 0;
  for (const TensorEntry& tensor : tensors) {
    EXPECT_EQ(tensor.begin, position);
    position = tensor.end;
  }
  EXPECT_EQ(position, 8 + 4 + 16 + 0 + 6 + 5);
  std::vector<TensorEntry> too_large{{"a", "U8", {int64_t{1} << 59}}};
  for (int i = 0; i < 16; ++i) too_large.push_back(too_large.front());
  EXPECT_TRUE(holds(error_of([&] { lay_out(too_large); }).message(), "more bytes than 64 bits"));
}

TEST(Safetensors, WritesTheBytesOfTheReferenceWriter) {
  std::vector<TensorEntry> tensors{{"\u00e9\"\\\x7f\x01\n\t\b\u2028\U0001F600", "U8", {}}};
  lay_out(tensors);
  EXPECT_EQ(header_bytes(tensors, {{"k", "v\x1f/"}}),
            std::string("p\0\0\0\0\0\0\0", 8) +
                "{\"__metadata__\":{\"k\":\"v\\u001f/\"},"
                "\"\u00e9\\\"\\\\\x7f\\u0001\\n\\t\\b\u2028\U0001F600\":"
                "{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}   ");
  EXPECT_EQ(header_bytes({}, {}), std::string("\x8\0\0\0\0\0\0\0", 8) + "{}      ");
}

TEST(Safetensors, ReadsBackWhatItWrites) {
  std::vector<TensorEntry> tensors{{"layers.0.wq", "BF16", {3, 5}},
                                   {"", "F32", {2}},
                                   {"t\u00fcr\n", "I64", {}},
                                   {"zero", "F16", {0, 4}}};
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"text", "{\"a\": 1}"}};
  lay_out(tensors);
  const std::string header = header_bytes(tensors, metadata);
  EXPECT_EQ(header.size() % 8, 0u);
  const SafetensorsHeader read = parse(header + pattern(tensors.back().end));
  EXPECT_EQ(read.metadata, metadata);
  EXPECT_EQ(read.data_start, static_cast<int64_t>(header.size()));
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (const TensorEntry& tensor : tensors) {
    const TensorEntry* found = read.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->begin, tensor.begin);
    EXPECT_EQ(found->end, tensor.end);
  }
}

TEST(Safetensors, WritesHeadersWhoseLengthDoesNotDependOnTheHashes) {
  std::vector<TensorEntry> tensors{{"w", "F32", {2}}};
  lay_out(tensors);
  const auto length = [&](const std::string& hash) {
    return header_bytes(tensors, {{kTensorHashesKey, tensor_hashes_text({{"w", hash}})}}).size();
  };
  EXPECT_EQ(length(std::string(32, '0')), length(hash_hex("something")));
}

TEST(Safetensors, RefusesToWriteNamesThatAreNotUtf8) {
  std::vector<TensorEntry> tensors{{"a\xFF", "F32", {2}}};
  lay_out(tensors);
  const Error error = error_of([&] { header_bytes(tensors, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.message(), "it is not UTF-8"));
}

TEST(Safetensors, ReadsManyTensorsInTimeThatGrowsWithTheirNumber) {
  std::vector<TensorEntry> tensors;
  for (int i = 0; i < 200'000; ++i)
    tensors.push_back({"layers." + std::to_string(i) + ".w", "U8", {1}});
  lay_out(tensors);
  const std::string header = header_bytes(tensors, {});
  const SafetensorsHeader read =
      parse_header(header, static_cast<int64_t>(header.size()) + 200'000, "many");
  EXPECT_EQ(read.tensors.size(), 200'000u);
}

TEST(ReadHeader, ReadsFromAFile) {
  const TestFolder folder;
  const std::string content = shard_file({{"w", "F32", {2, 2}}});
  const SafetensorsHeader header = read_header(folder.write("a.safetensors", content));
  EXPECT_EQ(header.tensors.size(), 1u);
  for (const size_t length : {size_t{0}, size_t{7}, size_t{8}, size_t{50}, content.size() - 1}) {
    const Error error =
        error_of([&] { read_header(folder.write("cut", content.substr(0, length))); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << length;
    EXPECT_TRUE(holds(error.message(), folder.at("cut")));
  }
  EXPECT_EQ(error_of([&] { read_header(folder.at("none")); }).kind(), ErrorKind::io);
}

}  // namespace
}  // namespace titan
