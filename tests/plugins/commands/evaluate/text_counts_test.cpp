// Counts of words, characters and bytes, as in Python: len(re.split(r"\s+", text)), len(text),
// len(text.rstrip().encode()).
#include "plugins/commands/evaluate/text_counts.h"

#include <string_view>

#include <gtest/gtest.h>

namespace titan::evaluation {
namespace {

struct Counted {
  std::string_view text;
  int64_t words, characters;
  size_t bytes_without_blanks_at_end;
};

TEST(TextCounts, ArePythons) {
  const Counted all[] = {
      {"", 1, 0, 0},
      {"\141", 1, 1, 1},
      {"\141\040\142", 2, 3, 3},
      {"\040\141\040\040\142\040", 4, 6, 5},
      {"\141\302\240\142\342\200\203\143\343\200\200", 4, 6, 8},
      {"\342\200\213\170", 1, 2, 4},
      {"\303\251\040\303\274\341\232\200", 3, 4, 5},
      {"\141\034\142\037", 3, 4, 3},
      {"\164\141\142\011\156\145\167\012\154\151\156\145\015\012", 4, 14, 12},
      {"\342\200\251\172\342\201\237\342\200\257", 3, 4, 4},
      {"\346\227\245\346\234\254\040\350\252\236", 2, 4, 10},
      {"\170\302\205", 2, 2, 1},
  };
  for (const Counted& counted : all) {
    EXPECT_EQ(num_words(counted.text), counted.words) << counted.text;
    EXPECT_EQ(num_characters(counted.text), counted.characters) << counted.text;
    EXPECT_EQ(without_blanks_at_end(counted.text).size(), counted.bytes_without_blanks_at_end)
        << counted.text;
  }
}

}  // namespace
}  // namespace titan::evaluation
