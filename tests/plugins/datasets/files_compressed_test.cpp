// Gzip and zstd: the reader returns the whole content or an Error with the place, and never stops
// silently.
#include <random>

#include <gtest/gtest.h>

#include "plugins/datasets/common/byte_reader.h"
#include "tests/plugins/datasets/files_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::gzip_member;
using titan::testing::holds;
using titan::testing::TestFolder;
using titan::testing::zstd_frame;

using Unpack = std::unique_ptr<ByteReader> (*)(std::unique_ptr<ByteReader>);

std::string unpacked(Unpack unpack, const std::string& packed, size_t step = 4096) {
  const auto reader = unpack(read_memory(packed, "web.packed"));
  std::string content, piece(step, '\0');
  for (;;) {
    const size_t got = reader->read(piece.data(), piece.size());
    content.append(piece, 0, got);
    if (got < step) break;
  }
  EXPECT_EQ(reader->read(piece.data(), piece.size()), 0U);
  return content;
}

std::string text(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string content;
  while (content.size() < size) content += "word" + std::to_string(random() % 5000) + " ";
  return content;
}

struct Format {
  const char* name;
  Unpack unpack;
  std::string (*pack)(std::string_view);
};
const Format kFormats[] = {
    {"gzip", gunzip, gzip_member},
    {"zstd", unzstd, [](std::string_view content) { return zstd_frame(content); }},
    {"zstd", unzstd,
     [](std::string_view content) {
       return zstd_frame(content, {.content_size = false, .checksum = false});
     }},
};

TEST(CompressedFiles, AreReadThroughAllMembersInReadsOfAnySize) {
  for (const Format& format : kFormats) {
    const std::string a = text(700000, 1), b = "b\n", c = text(300000, 2);
    const std::string packed =
        format.pack(a) + format.pack("") + format.pack(b) + format.pack(c) + format.pack("");
    for (const size_t step : {1, 7, 4096, 1 << 20})
      EXPECT_EQ(unpacked(format.unpack, packed, step), a + b + c) << format.name << step;
    EXPECT_EQ(unpacked(format.unpack, format.pack("")), "");
  }
}

TEST(CompressedFiles, CutOffAnywhereAreAnError) {
  for (const Format& format : kFormats) {
    const std::string content = text(3000, 3);
    const std::string packed = format.pack(content);
    for (size_t size = 0; size < packed.size(); ++size) {
      const Error error = error_of([&] { unpacked(format.unpack, packed.substr(0, size)); });
      EXPECT_EQ(error.kind(), ErrorKind::data);
      const std::string what = size == 0 ? "is empty: not one" : "is cut off inside a";
      EXPECT_TRUE(holds(error.what(), "'web.packed' " + what));
      EXPECT_TRUE(holds(error.what(), "at byte " + std::to_string(size) + " of the file, byte "));
    }
    // and in the second member
    for (size_t size = 1; size < packed.size(); size += 7) {
      const std::string two = packed + packed.substr(0, size);
      const Error error = error_of([&] { unpacked(format.unpack, two); });
      EXPECT_TRUE(holds(error.what(), "is cut off inside a"));
      EXPECT_TRUE(holds(error.what(), "at byte " + std::to_string(two.size()) + " of the file"));
    }
  }
}

TEST(CompressedFiles, GiveAllThatLiesBeforeTheCut) {
  for (const Format& format : kFormats) {
    const std::string content = text(1 << 20, 4);
    const std::string packed = format.pack(content);
    const std::string cut = packed.substr(0, packed.size() - 3);
    const auto reader = format.unpack(read_memory(cut, "cut"));
    std::string piece(1000, '\0');
    uint64_t num_read = 0;
    const Error error = error_of([&] {
      while (reader->read(piece.data(), piece.size()) == piece.size()) num_read += piece.size();
    });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_GT(num_read, content.size() / 2);
  }
}

TEST(CompressedFiles, RefuseBytesBehindTheLastMember) {
  for (const Format& format : kFormats) {
    const std::string packed = format.pack("content");
    for (const std::string& garbage :
         {std::string(16, '\0') + "garbage, garbage", std::string("garbage, garbage"),
          std::string("\x1f\x8c............", 14)}) {
      const Error error = error_of([&] { unpacked(format.unpack, packed + garbage); });
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_TRUE(holds(error.what(), std::string("continues after its last ") + format.name));
      EXPECT_TRUE(holds(error.what(), "byte 7 unpacked; get the file again"));
    }
  }
}

TEST(CompressedFiles, MayEndInZerosWhereTheirToolsLetThem) {
  const std::string member = gzip_member("content");
  for (const size_t count : {1, 16, 511, 300000}) {
    const std::string zeros(count, '\0');
    for (const size_t step : {1, 4096}) {
      EXPECT_EQ(unpacked(gunzip, member + zeros, step), "content");
      EXPECT_EQ(unpacked(gunzip, member + zeros + member + zeros, step), "contentcontent");
    }
    EXPECT_TRUE(holds(error_of([&] { unpacked(gunzip, zeros + member); }).what(), "is not a gzip"));
    EXPECT_EQ(error_of([&] { unpacked(gunzip, zeros); }).kind(), ErrorKind::data);
    const std::string cut = member + zeros + member.substr(0, 9);
    EXPECT_TRUE(holds(error_of([&] { unpacked(gunzip, cut); }).what(), "is cut off inside a gzip"));
  }
  const std::string frame = zstd_frame("content") + std::string(16, '\0');
  EXPECT_TRUE(holds(error_of([&] { unpacked(unzstd, frame); }).what(), "continues after its last"));
}

TEST(CompressedFiles, DamageIsNeverTakenForContent) {
  // with a checksum, a changed byte is refused, or is part of a field without effect (a time stamp)
  for (const Format& format : {kFormats[0], kFormats[1]}) {
    const std::string content = text(600, 5);
    const std::string packed = format.pack(content);
    int num_refused = 0;
    for (size_t i = 0; i < packed.size(); ++i) {
      for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
        std::string damaged = packed;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        try {
          EXPECT_EQ(unpacked(format.unpack, damaged), content) << format.name << " byte " << i;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::data);
          ++num_refused;
        }
      }
    }
    EXPECT_GT(num_refused, static_cast<int>(3 * packed.size()));
  }
}

TEST(CompressedFiles, SayWhenTheyAreNothingOfTheKind) {
  const std::string content = "{\"text\":\"plain\"}\n";
  EXPECT_TRUE(holds(error_of([&] { unpacked(gunzip, content); }).what(), "is not a gzip file"));
  EXPECT_TRUE(holds(error_of([&] { unpacked(unzstd, content); }).what(), "is not a zstd file"));
  EXPECT_TRUE(
      holds(error_of([&] { unpacked(gunzip, zstd_frame("x")); }).what(), "is not a gzip file"));
}

TEST(CompressedFiles, MayHaveLargeZstdWindowsAndSkippableFrames) {
  const std::string content = text(100000, 6);
  const std::string skippable("\x50\x2A\x4D\x18\x04\x00\x00\x00note", 12);
  const std::string packed =
      skippable + zstd_frame(content, {.content_size = false, .window_log = 28}) + skippable;
  EXPECT_EQ(unpacked(unzstd, packed), content);
}

TEST(ByteReader, ChoosesByTheNameOfTheFile) {
  TestFolder folder;
  std::string buffer(100, '\0');
  for (const std::string& path :
       {folder.write("a.jsonl", "content"), folder.write("a.jsonl.gz", gzip_member("content")),
        folder.write("a.jsonl.zst", zstd_frame("content"))}) {
    EXPECT_EQ(read_unpacked(path)->read(buffer.data(), buffer.size()), 7U) << path;
    EXPECT_EQ(buffer.substr(0, 7), "content");
    EXPECT_EQ(is_compressed(path), !path.ends_with("l"));
  }
}

TEST(ByteReader, NoticesThatTheFileBecameShorter) {
  TestFolder folder;
  const std::string path = folder.write("a", std::string(1000, 'x'));
  const auto reader = read_file(path);
  std::string buffer(600, '\0');
  EXPECT_EQ(reader->read(buffer.data(), buffer.size()), 600U);
  std::filesystem::resize_file(path, 700);
  const Error error = error_of([&] { reader->read(buffer.data(), buffer.size()); });
  EXPECT_TRUE(holds(error.what(), "has become shorter than the 1000 bytes"));
  EXPECT_EQ(error_of([&] { read_file(path, 701); }).kind(), ErrorKind::data);
}

}  // namespace
}  // namespace titan::datasets
