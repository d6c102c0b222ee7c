#include "view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <titan/program/quantity_text.h>
#include <titan/program/units.h>
#include <titan/shown_text.h>

namespace titan::commands {
namespace {

constexpr size_t kRankColumns = 5, kStepColumns = 9, kWaitColumns = 8, kShareColumns = 6,
                 kMemoryColumns = 11;

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// "12.3 s", "3:07"
std::string seconds_text(double seconds) {
  return seconds < 60 ? decimal(seconds, seconds < 10 ? 2 : 1) + " s" : duration_text(seconds);
}

std::string right(const std::string& text, size_t columns) {
  const size_t own = columns_of(text);
  return own < columns ? std::string(columns - own, ' ') + text : in_columns(text, columns);
}

/// Joins the parts with two blanks, in as many lines as needed.
std::vector<std::string> joined(const std::vector<std::string>& parts, size_t columns) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    const size_t own = columns_of(part);
    if (!lines.empty() && columns_of(lines.back()) + 2 + own <= columns)
      lines.back() += "  " + part;
    else
      lines.push_back(own <= columns ? part : in_columns(part, columns));
  }
  return lines;
}

std::vector<std::string> header_parts(const RunSnapshot& snapshot) {
  std::vector<std::string> parts;
  if (snapshot.step >= 0) {
    std::string text = "step " + with_commas(snapshot.step);
    if (snapshot.steps > 0)
      text += " of " + with_commas(snapshot.steps) + " (" +
              std::to_string(100 * std::min(snapshot.step, snapshot.steps) / snapshot.steps) +
              " %)";
    parts.push_back(text);
  }
  if (const double left = snapshot.seconds_left();
      !std::isnan(left) && snapshot.count(RankMark::ended) != std::ssize(snapshot.rows))
    parts.push_back(duration_text(left) + " left");
  if (!std::isnan(snapshot.tokens_per_second))
    parts.push_back(with_commas(std::llround(std::clamp(snapshot.tokens_per_second, 0.0, 1e15))) +
                    " tokens/s");
  if (!std::isnan(snapshot.step_seconds))
    parts.push_back(seconds_text(snapshot.step_seconds) + " a step");
  if (!std::isnan(snapshot.loss)) parts.push_back("loss " + decimal(snapshot.loss, 4));
  if (!std::isnan(snapshot.goodput))
    parts.push_back("goodput " + decimal(100 * snapshot.goodput, 1) + " %");
  return parts;
}

std::string rank_counts(const RunSnapshot& snapshot) {
  struct Count {
    int64_t number;
    const char* what;
  };
  const int64_t silent = snapshot.count(RankMark::silent), ended = snapshot.count(RankMark::ended);
  std::string text =
      std::to_string(snapshot.rows.size()) + (snapshot.rows.size() == 1 ? " rank" : " ranks");
  const char* before = ": ";
  for (const Count& count :
       {Count{std::ssize(snapshot.rows) - silent - ended, "working"}, Count{ended, "ended"},
        Count{silent, "SILENT"}, Count{snapshot.count(RankMark::awaited), "AWAITED"},
        Count{snapshot.count(RankMark::behind), "BEHIND"},
        Count{snapshot.num_missing, "without a status"},
        Count{snapshot.num_unreadable, "unreadable"}}) {
    if (count.number == 0) continue;
    text += before + std::to_string(count.number) + " " + count.what;
    before = ", ";
  }
  return text;
}

std::string note_of(const RankRow& row) {
  switch (row.mark) {
    case RankMark::silent:
      return std::isnan(row.age) ? "! SILENT" : "! SILENT " + duration_text(row.age);
    case RankMark::awaited:
      return "! others wait";
    case RankMark::behind:
      return "! behind";
    case RankMark::slowest:
      return "! slowest";
    case RankMark::ended:
      return "ended";
    case RankMark::none:
      break;
  }
  return row.status.state == "starting" ? "starting" : "";
}

std::string memory_text(const RankStatus& status) {
  if (std::isnan(status.memory_bytes)) return "-";
  const std::string bytes = decimal(status.memory_bytes / kGiB, 2) + "G";
  if (!(status.memory_total > 0)) return bytes;
  return bytes + " " + decimal(100 * status.memory_bytes / status.memory_total, 0) + "%";
}

/// What a rank is doing, shortened to the column. The step has a column of its own and is left out.
/// A text that is too long is cut to the collective that the rank waits in. For a rank whose status
/// is old the age of the status comes first.
std::string doing_text(const RankRow& row, size_t columns) {
  const RankStatus& status = row.status;
  if (row.mark != RankMark::ended && row.age > kFreshSeconds)
    return "no sign of life " + duration_text(row.age) +
           "; last: " + printable(status.doing.empty() ? status.phase : status.doing);
  std::string text = printable(status.doing.empty() ? status.phase : status.doing);
  const std::string step = "in step " + std::to_string(status.step) + ", ";
  if (text.starts_with(step)) text.erase(0, step.size());
  if (text.starts_with("in ")) text.erase(0, 3);
  const size_t wait = text.find("waits in ");
  return columns_of(text) > columns && wait != text.npos ? text.substr(wait) : text;
}

/// The columns of a table for one page of ranks.
struct Table {
  size_t columns = 0;  ///< of the screen
  size_t doing = 0;    ///< width of the column "doing": the rest of the screen

  Table(const std::vector<RankRow>& rows, size_t screen_columns) : columns(screen_columns) {
    size_t notes = 4;
    for (const RankRow& row : rows) notes = std::max(notes, columns_of(note_of(row)));
    const size_t others =
        kRankColumns + kStepColumns + kWaitColumns + kShareColumns + kMemoryColumns + notes + 6;
    doing = std::max<size_t>(columns > others ? columns - others : 0, 8);
  }
  std::string line(const std::vector<std::string>& cells) const {
    return in_columns(right(cells[0], kRankColumns) + " " + right(cells[1], kStepColumns) + " " +
                          in_columns(cells[2], doing) + " " + right(cells[3], kWaitColumns) + " " +
                          right(cells[4], kShareColumns) + " " + right(cells[5], kMemoryColumns) +
                          " " + cells[6],
                      columns);
  }
};

std::string line_of(const RankRow& row, const Table& table, const ViewOptions& options) {
  const RankStatus& status = row.status;
  const double share = status.communication_share();
  const std::string line = table.line(
      {std::to_string(status.rank), status.step < 0 ? "-" : with_commas(status.step),
       doing_text(row, table.doing),
       status.waiting_seconds > 0 ? seconds_text(status.waiting_seconds) : "-",
       std::isnan(share) ? "-" : decimal(100 * share, 0) + "%", memory_text(status), note_of(row)});
  if (!options.has_colours || row.mark == RankMark::none) return line;
  return (row.mark == RankMark::ended ? "\033[2m" : "\033[1;31m") + line + "\033[0m";
}

std::string page_line(const View& view, const RunSnapshot& snapshot, RankOrder order) {
  constexpr const char* kOrders[] = {"worst first", "by rank", "by step", "by waiting",
                                     "by memory"};
  std::string text = std::string(kOrders[static_cast<size_t>(order)]);
  if (view.num_pages > 1)
    text += ", page " + std::to_string(view.page + 1) + " of " + std::to_string(view.num_pages);
  if (!snapshot.rows.empty()) text += "   o order   space b pages   q quit";
  return text;
}

}  // namespace

std::string in_columns(std::string_view text, size_t columns) {
  const size_t own = columns_of(text);
  if (own <= columns) return std::string(text) + std::string(columns - own, ' ');
  std::string cut;
  size_t used = 0;
  for (const std::string& character : printable_characters(text)) {
    const size_t width = columns_of(character);
    if (used + width + 1 > columns) break;
    cut += character;
    used += width;
  }
  if (columns == 0) return cut;
  return cut + "~" + std::string(columns - used - 1, ' ');
}

View to_view(RunSnapshot snapshot, const std::string& name, const ViewOptions& options) {
  View view;
  sort_rows(snapshot.rows, options.order);
  std::vector<std::string> head =
      joined({"titan top " + printable(name), rank_counts(snapshot)}, options.columns);
  for (std::string& line : joined(header_parts(snapshot), options.columns))
    head.push_back(std::move(line));
  const bool is_live = options.rows > 0;
  const size_t taken = head.size() + 1 + (is_live ? 1 : 0);  // with the table's head and keys
  const size_t room = !is_live ? std::max<size_t>(snapshot.rows.size(), 1)
                               : std::max<size_t>(options.rows, taken + 1) - taken;
  view.num_pages = std::max<size_t>(1, (snapshot.rows.size() + room - 1) / room);
  view.page = std::min(options.page, view.num_pages - 1);
  view.lines = std::move(head);
  const auto first = snapshot.rows.begin() + static_cast<ptrdiff_t>(view.page * room);
  const std::vector<RankRow> shown(first, first + std::min<ptrdiff_t>(static_cast<ptrdiff_t>(room),
                                                                      snapshot.rows.end() - first));
  const Table table(shown, options.columns);
  const std::string titles =
      table.line({"rank", "step", "doing", "waits", "comm", "memory", "note"});
  view.lines.push_back(options.has_colours ? "\033[7m" + titles + "\033[0m" : titles);
  for (const RankRow& row : shown) view.lines.push_back(line_of(row, table, options));
  if (is_live) {
    view.lines.push_back(in_columns(page_line(view, snapshot, options.order), options.columns));
    if (view.lines.size() > options.rows) view.lines.resize(options.rows);
  }
  return view;
}

}  // namespace titan::commands
