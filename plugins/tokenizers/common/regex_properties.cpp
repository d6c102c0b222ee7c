#include "regex_properties.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <titan/error.h>

#include "unicode_additions.h"

namespace titan::bpe {
namespace {

struct Name {
  std::string_view folded;  // lower case, without spaces, hyphens and underscores
  std::string_view pcre2;
};

constexpr Name kCategories[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
};

constexpr std::string_view kShortCategories[] = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N", "Nd",
    "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm",
    "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};

constexpr Name kBinary[] = {
    {"alphabetic", "Alphabetic"},
    {"uppercase", "Uppercase"},
    {"lowercase", "Lowercase"},
    {"whitespace", "White_Space"},
    {"ideographic", "Ideographic"},
    {"emoji", "Emoji"},
    {"extendedpictographic", "Extended_Pictographic"},
};

// Names that are POSIX classes in Oniguruma, or whose sets differ between versions of Unicode.
constexpr std::string_view kRefused[] = {
    "alnum", "alpha",    "blank", "cntrl", "digit",      "graph", "lower",
    "print", "punct",    "space", "upper", "xdigit",     "word",  "ascii",
    "any",   "assigned", "c",     "cn",    "unassigned", "cs",    "surrogate"};

std::string fold(std::string_view name) {
  std::string folded;
  for (char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

const Name* find_name(const Name* begin, const Name* end, std::string_view folded) {
  const Name* found =
      std::find_if(begin, end, [&](const Name& name) { return name.folded == folded; });
  return found == end ? nullptr : found;
}

void resolve(std::string_view written, Property& property) {
  const std::string folded = fold(written);
  for (std::string_view category : kShortCategories) {
    if (fold(category) == folded) {
      property.name = property.category = category;
      return;
    }
  }
  if (const Name* name = find_name(std::begin(kCategories), std::end(kCategories), folded)) {
    property.name = property.category = name->pcre2;
    if (property.name == "C") property.category.clear();
    return;
  }
  if (const Name* name = find_name(std::begin(kBinary), std::end(kBinary), folded)) {
    property.name = name->pcre2;
    return;
  }
  if (folded.empty() ||
      std::find(std::begin(kRefused), std::end(kRefused), folded) != std::end(kRefused) ||
      !std::all_of(folded.begin(), folded.end(),
                   [](unsigned char c) { return std::isalnum(c) != 0; })) {
    throw PatternError(0,
                       titan::detail::concat("the property \\p{", written, "} is not supported"));
  }
  property.name = "sc:" + folded;  // PCRE2 reports unknown scripts
}

}  // namespace

std::string Property::added_items() const {
  return category.empty() ? std::string() : added_class_items(category);
}

Property parse_property(std::string_view escape) {
  Property property;
  const char kind = escape.size() > 1 ? escape[1] : '\0';
  if (kind == 'd' || kind == 'D') {
    property.negated = kind == 'D';
    property.name = property.category = "Nd";
    property.length = 2;
    return property;
  }
  property.negated = kind == 'P';
  const size_t close = escape.find('}');
  if (escape.size() < 3 || escape[2] != '{' || close == std::string_view::npos) {
    throw PatternError(0, titan::detail::concat("\\", kind, " needs a name in braces"));
  }
  std::string_view written = escape.substr(3, close - 3);
  if (written.starts_with('^')) {
    property.negated = !property.negated;
    written.remove_prefix(1);
  }
  resolve(written, property);
  property.length = close + 1;
  return property;
}

std::string word_class_items(Dialect dialect) {
  std::string items =
      "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"
      "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
  items +=
      dialect == Dialect::oniguruma ? "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}" : "\\x{200C}\\x{200D}";
  return items + added_class_items("L") + added_class_items("M") + added_class_items("Nd");
}

}  // namespace titan::bpe
