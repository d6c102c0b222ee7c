// See csv_table.h.
#include "csv_table.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::pipeline_schedules {
namespace {

using Kind = PipelineAction::Kind;

constexpr int kHighestIndex = 999'999;
constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kCommunication[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                               "UNSHARD", "RESHARD", "REDUCE_GRAD"};

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpaces = " \t\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string shown(std::string_view cell) {
  return in_quotes(cell, 40);
}

/// Removes and returns the text before the next `separator`; all of it if there is none.
std::string_view take_until(char separator, std::string_view& text) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

/// Position of a cell, for messages.
struct Place {
  const std::string& name;
  int line;  // from 1
  int cell;  // from 1

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::data, name, ":", line, ":", cell, ": ", parts...);
  }
};

int take_index(std::string_view& text, const char* what, std::string_view cell,
               const Place& place) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0)
    place.refuse("a cell is <stage><F, B, I or W><microbatch>, such as 2F0, got ", shown(cell));
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, index);
  if (error != std::errc() || index > kHighestIndex)
    place.refuse("the ", what, " must be <= ", kHighestIndex, ", got ", shown(cell));
  text.remove_prefix(digits);
  return index;
}

std::optional<Kind> kind_of(std::string_view word) {
  if (word == "F") return Kind::forward;
  if (word == "B") return Kind::backward;
  if (word == "I") return Kind::input_grad;
  if (word == "W") return Kind::weight_grad;
  return std::nullopt;
}

PipelineAction parse_action(std::string_view cell, const Place& place) {
  std::string_view rest = cell;
  PipelineAction action;
  action.stage = take_index(rest, "stage", cell, place);
  const std::string_view word =
      rest.substr(0, std::min(rest.find_first_of("0123456789"), rest.size()));
  if (std::find(std::begin(kCommunication), std::end(kCommunication), word) !=
      std::end(kCommunication))
    place.refuse("the table holds the communication ", shown(cell),
                 "; remove it: communication is derived from the F, B, I and W");
  const auto kind = kind_of(word);
  if (!kind)
    place.refuse("a cell is <stage><F, B, I or W><microbatch>, such as 2F0, got ", shown(cell));
  action.kind = *kind;
  rest.remove_prefix(word.size());
  action.microbatch = take_index(rest, "microbatch", cell, place);
  if (!rest.empty()) place.refuse(shown(rest), " follows the action in ", shown(cell));
  return action;
}

/// "(0F3;3B1)OVERLAP_F_B"
void parse_pair(std::string_view cell, const Place& place, std::vector<PipelineAction>& row) {
  const size_t close = cell.find(')');
  if (close == std::string_view::npos || trimmed(cell.substr(close + 1)) != kOverlap)
    place.refuse("a pair is (<F>;<B>)", kOverlap, ", such as (0F3;3B1)", kOverlap, ", got ",
                 shown(cell));
  std::string_view inside = cell.substr(1, close - 1);
  const std::string_view first = trimmed(take_until(';', inside));
  if (inside.find(';') != std::string_view::npos)
    place.refuse("a pair has two actions, got ", shown(cell));
  PipelineAction forward = parse_action(first, place);
  const PipelineAction backward = parse_action(trimmed(inside), place);
  if (forward.kind != Kind::forward || backward.kind != Kind::backward)
    place.refuse("a pair is an F and then a B, got ", shown(cell));
  forward.overlaps_next = true;
  row.push_back(forward);
  row.push_back(backward);
}

std::vector<PipelineAction> parse_row(std::string_view line, const std::string& name,
                                      int line_number) {
  std::vector<PipelineAction> row;
  for (int cell_number = 1; !line.empty(); ++cell_number) {
    const Place place{name, line_number, cell_number};
    const std::string_view cell = trimmed(take_until(',', line));
    if (cell.empty()) continue;
    if (cell.front() == '(')
      parse_pair(cell, place, row);
    else
      row.push_back(parse_action(cell, place));
  }
  if (row.empty())
    Place{name, line_number, 1}.refuse(
        "the row holds no action; the table needs one row for each rank, and each rank must have "
        "actions");
  return row;
}

}  // namespace

PipelineTable parse_csv_table(std::string_view text, const std::string& name) {
  const std::string encoding = utf16_hint(text);
  TITAN_CHECK(encoding.empty(), data, name, ":1:1: this is not a table of cells such as 2F0",
              encoding);
  const size_t end = text.find_last_not_of(" \t\r\n");
  text = end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
  TITAN_CHECK(!text.empty(), data, name,
              ":1:1: the table is empty; it needs one row for each rank");
  PipelineTable table;
  for (int line = 1; !text.empty(); ++line)
    table.push_back(parse_row(take_until('\n', text), name, line));
  return table;
}

PipelineShape shape_of(const PipelineTable& table) {
  PipelineShape shape{
      .num_ranks = static_cast<int>(table.size()), .num_stages = 0, .num_microbatches = 0};
  for (const auto& row : table) {
    for (const PipelineAction& action : row) {
      shape.num_stages = std::max(shape.num_stages, action.stage + 1);
      shape.num_microbatches = std::max(shape.num_microbatches, action.microbatch + 1);
    }
  }
  return shape;
}

}  // namespace titan::pipeline_schedules
