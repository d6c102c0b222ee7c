#include "char_classes.h"

#include <map>

#include "unicode.h"

namespace titan::bpe::detail {

uint16_t slow_class_of(char32_t c) {
  if (c == '\r' || c == '\n') return kNewline;
  if (is_white_space(c)) return kSpace;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kCaseless;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return kOther;
  }
}

CharClassTable::CharClassTable() {
  using Row = std::array<uint16_t, 256>;
  std::map<Row, uint16_t> known;
  for (char32_t first = 0; first < kEnd; first += 256) {
    Row row;
    for (char32_t i = 0; i < 256; ++i) row[i] = slow_class_of(first + i);
    const auto [found, is_new] = known.emplace(row, static_cast<uint16_t>(rows.size()));
    if (is_new) rows.push_back(row);
    row_of[first >> 8] = found->second;
  }
}

}  // namespace titan::bpe::detail
