#include <titan/settings/toml_source.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

struct Reading {
  SettingList list;
  Diagnostics diagnostics;

  explicit Reading(const std::string& text) {
    list = parse_toml("train.toml", text, diagnostics).value_or(SettingList());
  }
  const Setting& at(const std::string& key) const {
    for (const Setting& setting : list.settings)
      if (dotted(setting.path) == key) return setting;
    throw std::out_of_range(key);
  }
  std::string report() const {
    return diagnostics.sorted().empty() ? "" : render(diagnostics.sorted().front());
  }
};

std::string place(const SourceRange& range) {
  return range.to_string() + "+" + std::to_string(range.length);
}

TEST(TomlSource, KeysAndValuesHaveTheirPlaces) {
  const Reading reading(
      "[training]\nsteps = 10_000\n  [training.dataloader]\nnum_workers   =   \"ab\" # why\n");
  EXPECT_EQ(reading.at("training.steps").value, Value(10000));
  EXPECT_EQ(place(reading.at("training.steps").key), "train.toml:2:1+5");
  EXPECT_EQ(place(reading.at("training.steps").where), "train.toml:2:9+6");
  EXPECT_EQ(place(reading.at("training.dataloader.num_workers").key), "train.toml:4:1+11");
  EXPECT_EQ(place(reading.at("training.dataloader.num_workers").where), "train.toml:4:19+4");
  ASSERT_EQ(reading.list.tables.size(), 2u);
  EXPECT_EQ(place(reading.list.tables[0].where), "train.toml:1:2+8");
}

TEST(TomlSource, DottedKeysAndInlineTablesAreFlattened) {
  const Reading reading("a.b = 1\nc = { d = 2, e.f = [3, 4.5, \"x\"] }\n");
  EXPECT_EQ(reading.at("a.b").value, Value(1));
  EXPECT_EQ(reading.at("c.d").value, Value(2));
  EXPECT_EQ(reading.at("c.e.f").value, Value::list({3, 4.5, "x"}));
}

TEST(TomlSource, SettingsComeInTheOrderOfWriting) {
  const Reading reading("[z]\nb = 1\na = 2\n[a]\nc = 3\n");
  ASSERT_EQ(reading.list.settings.size(), 3u);
  EXPECT_EQ(dotted(reading.list.settings[0].path), "z.b");
  EXPECT_EQ(dotted(reading.list.settings[1].path), "z.a");
  EXPECT_EQ(dotted(reading.list.settings[2].path), "a.c");
}

TEST(TomlSource, ByteOrderMarkAndWindowsLineEndsDoNotMovePlaces) {
  const Reading reading("\xEF\xBB\xBF[a]\r\nb = 1\r\n");
  EXPECT_EQ(reading.report(), "");
  EXPECT_EQ(place(reading.at("a.b").where), "train.toml:2:5+1");
  EXPECT_EQ(reading.at("a.b").where.source->lines[1], "b = 1");
}

TEST(TomlSource, ColumnsCountCharactersNotBytes) {
  const Reading reading("a = { \"größe\" = 1, b = 2 }\n");
  EXPECT_EQ(place(reading.at("a.b").where), "train.toml:1:24+1");
}

TEST(TomlSource, ValueOverSeveralLinesIsPlacedOnItsFirst) {
  const Reading reading("a = [\n  1,\n  2,\n]\n");
  EXPECT_EQ(place(reading.at("a").where), "train.toml:1:5+1");
}

TEST(TomlSource, MegabyteValueIsReadWhole) {
  const std::string word(1 << 20, 'x');
  const Reading reading("a = \"" + word + "\"\n");
  EXPECT_EQ(reading.at("a").value.as_string().size(), word.size());
}

TEST(TomlSource, NotANumberIsAValueLikeAnyOther) {
  EXPECT_TRUE(Reading("a = nan\n").at("a").value.is_number());
}

TEST(TomlSource, SyntaxErrorsHaveTheirPlaceAndEndTheReading) {
  const struct {
    const char* text;
    const char* place;
  } kCases[] = {{"a = 1\nb = \n", "train.toml:2:"},
                {"[a\nb = 1\n", "train.toml:1:"},
                {"a = 1\na = 2\n", "train.toml:2:"},
                {"[a]\n[a]\n", "train.toml:2:"},
                {"a = 99999999999999999999\n", "train.toml:1:"},
                {"a = \"x\n", "train.toml:1:"},
                {"a = \"\xff\"\n", "train.toml:1:"},
                {"a = tru\n", "train.toml:1:"},
                {"a = 1 b = 2\n", "train.toml:1:"}};
  for (const auto& [text, place] : kCases) {
    const Reading reading(text);
    ASSERT_EQ(reading.diagnostics.sorted().size(), 1u) << text;
    EXPECT_TRUE(reading.report().starts_with(place)) << reading.report();
    EXPECT_NE(reading.report().find("error: malformed TOML: "), std::string::npos)
        << reading.report();
    EXPECT_TRUE(reading.list.settings.empty());
  }
}

TEST(TomlSource, Utf16IsCalledSo) {
  for (const std::string& text :
       {std::string("\xff\xfe[\0a\0]\0", 8), std::string("\0[\0a\0]", 6)}) {
    const Reading reading(text);
    EXPECT_NE(reading.report().find("~ it looks like UTF-16: save it as UTF-8"), std::string::npos)
        << reading.report();
  }
}

TEST(TomlSource, WhatIsNotSeenIsEscapedAndTheCaretStandsBelowIt) {
  Reading reading("[a]\n\"x\u202e你\" = \"\u009b\"\t# \u200b\n");
  const Setting& setting = reading.list.settings.at(0);
  reading.diagnostics.error(setting.where, "must not be '" + setting.value.as_string() + "\n'",
                            "a\u2028b");
  EXPECT_EQ(reading.report(),
            "train.toml:2:9: error: must not be '\\u009b\\x0a'\n"
            "    2 | \"x\\u202e你\" = \"\\u009b\"\t# \\u200b\n"
            "      |               ^~~~~~~~ a\\u2028b");
}

TEST(TomlSource, KeysWithoutEndAreRefusedBeforeTheyUseUpTheStack) {
  std::string key = "a";
  for (int i = 0; i < 500000; ++i) key += ".a";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "b = {" + key + " = 1}\n", "x = 1\n" + key + "=1"})
    EXPECT_NE(Reading(text).report().find("a key has more than 64 parts"), std::string::npos);
}

TEST(TomlSource, DotsInStringsAndCommentsAreNoKeyParts) {
  const std::string dots(500, '.');
  const Reading reading("# " + dots + "\na = \"" + dots + "\\\"" + dots + "\"\nb = '" + dots +
                        "'\nc = \"\"\"\n" + dots + "\"\n" + dots + "\"\"\"\"\nd = '''" + dots +
                        "'''\ne = 1.5\n");
  EXPECT_EQ(reading.report(), "");
  EXPECT_EQ(reading.list.settings.size(), 5u);
}

TEST(TomlSource, DatesAreRefused) {
  EXPECT_NE(
      Reading("a = 1979-05-27\n").report().find("train.toml:1:5: error: no option takes a date"),
      std::string::npos);
}

TEST(TomlSource, FilesThatCannotBeReadAreNamed) {
  Diagnostics missing, folder;
  read_toml("/nowhere/train.toml", missing);
  EXPECT_EQ(render(missing.sorted().front()),
            "error: cannot read the configuration /nowhere/train.toml: no such file");
  read_toml(std::filesystem::temp_directory_path(), folder);
  EXPECT_NE(render(folder.sorted().front()).find("it is a folder, not a TOML file"),
            std::string::npos);
}

TEST(TomlSource, ReadsAFile) {
  const auto file =
      std::filesystem::temp_directory_path() / ("titan_toml_" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << "[a]\nb = 1\n";
  Diagnostics diagnostics;
  const SettingList list = read_toml(file, diagnostics).value();
  std::filesystem::remove(file);
  ASSERT_EQ(list.settings.size(), 1u);
  EXPECT_EQ(list.settings[0].where.to_string(), file.string() + ":2:5");
}

TEST(TomlSource, AssignmentPointsIntoTheArgument) {
  Diagnostics diagnostics;
  const SettingList list = parse_assignment("a.b=[1, 2]", "--set a.b=[1, 2]", 7, diagnostics);
  ASSERT_EQ(list.settings.size(), 1u);
  EXPECT_EQ(list.settings[0].value, Value::list({1, 2}));
  EXPECT_EQ(list.settings[0].where.column, 11);
  EXPECT_EQ(list.settings[0].where.to_string(), "command line");
}

}  // namespace
}  // namespace titan::core
