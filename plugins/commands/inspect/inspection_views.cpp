// Formats an inspection as text and as JSON.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <set>
#include <utility>

#include <titan/checkpoints/unlisted_files.h>
#include <titan/files/json_string.h>
#include <titan/program/quantity_text.h>
#include <titan/program/text_table.h>

#include "inspection.h"

namespace titan::commands {
namespace {

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, kUnits[unit]);
  return text;
}

std::string time_text(double seconds) {
  // a date beyond the year 9999 is invalid
  if (!(std::abs(seconds) < 253402300800.0)) return "unknown";
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t dim = 0; dim < shape.size(); ++dim)
    text += (dim > 0 ? ", " : "") + std::to_string(shape[dim]);
  return text + "]";
}

const char* name_of(Marker marker) {
  switch (marker) {
    case Marker::manifest:
      return "titan";
    case Marker::hf_index:
      return "hugging face";
    case Marker::dcp:
      return "torch, pickled";
    case Marker::none:
      break;
  }
  return "incomplete";
}

const char* contents_text(Contents contents) {
  return contents == Contents::training ? "training" : "weights";
}

/// Right-aligns columns of numbers with leading blanks.
void align_right(std::vector<TextRow>& rows, std::initializer_list<size_t> columns) {
  for (const size_t column : columns) {
    size_t width = 0;
    for (const TextRow& row : rows) width = std::max(width, row.at(column).size());
    for (TextRow& row : rows) row[column].insert(0, width - row[column].size(), ' ');
  }
}

std::string layout_text(const SavedLayout& layout) {
  std::string text =
      std::to_string(layout.world_size()) + (layout.world_size() == 1 ? " rank" : " ranks");
  const char* separator = ": ";
  for (const dist::Grid::Axis& axis : layout.axes) {
    if (axis.size == 1) continue;
    text += separator + axis.name + " " + std::to_string(axis.size);
    separator = ", ";
  }
  return text;
}

/// "3fa…, branch 1 from step 10 of branch 0"
std::string job_text(const Lineage& lineage) {
  std::string text = lineage.job + ", branch " + std::to_string(lineage.branch);
  if (lineage.parent)
    text += " from step " + std::to_string(lineage.parent->step) + " of " +
            (lineage.parent->job == lineage.job ? "" : "job " + lineage.parent->job + ", ") +
            "branch " + std::to_string(lineage.parent->branch);
  return text;
}

std::string manifest_text(const CheckpointManifest& manifest) {
  const bool is_training = manifest.contents == Contents::training;
  std::vector<TextRow> rows{
      {"step", with_commas(manifest.step)},
      {"contents", is_training ? "training: a run can resume from it" : "weights only"},
      {"model", manifest.model + (manifest.flavor.empty() ? "" : " " + manifest.flavor)},
      {"layout", layout_text(manifest.layout)},
      {"tokens seen", with_commas(manifest.tokens_seen)},
      {"seed", std::to_string(manifest.seed)},
      {"saved", time_text(manifest.time)},
      {"written by", manifest.program}};
  if (manifest.tokens_learned != manifest.tokens_seen)
    rows.insert(rows.begin() + 5, {"tokens learned", with_commas(manifest.tokens_learned)});
  if (manifest.lineage.is_known()) rows.push_back({"job", job_text(manifest.lineage)});
  return text_table(rows, "  ");
}

std::string steps_text(const Inspection& inspection) {
  std::vector<TextRow> rows{{"step", "format", "contents", "size", ""}};
  for (const InspectedStep& step : inspection.steps) {
    std::string remark = step.is_newest ? "newest complete" : "";
    if (step.branch > 0)
      remark += (remark.empty() ? "branch " : ", branch ") + std::to_string(step.branch);
    rows.push_back({std::to_string(step.step.step), name_of(step.step.marker),
                    step.contents.empty() ? "-" : step.contents, size_text(step.bytes), remark});
  }
  align_right(rows, {0, 3});
  return text_table(rows);
}

std::string files_text(const Inspection& inspection) {
  std::vector<TextRow> rows{{"file", "bytes", "size", "tensors"}};
  int64_t bytes = 0;
  for (const InspectedFile& file : inspection.files) {
    rows.push_back({file.name, with_commas(file.bytes),
                    file.is_missing ? "missing" : size_text(file.bytes),
                    file.num_tensors ? with_commas(*file.num_tensors) : "-"});
    bytes += file.bytes;
  }
  if (inspection.files.size() > 1)
    rows.push_back({std::to_string(inspection.files.size()) + " files", with_commas(bytes),
                    size_text(bytes), ""});
  align_right(rows, {1, 2, 3});
  return text_table(rows);
}

std::string totals_text(const std::vector<TensorTotal>& totals) {
  std::vector<TextRow> rows{{"", "type", "tensors", "elements", "bytes", "size"}};
  for (const TensorTotal& total : totals)
    rows.push_back({total.is_optimizer ? "optimizer" : "weights", total.dtype,
                    with_commas(total.num_tensors), with_commas(total.num_elements),
                    with_commas(total.bytes), size_text(total.bytes)});
  align_right(rows, {2, 3, 4, 5});
  return text_table(rows);
}

/// Names of the files that hold its pieces, each once.
std::set<std::string> files_of(const TensorIndex& index, const StoredTensor& tensor) {
  std::set<std::string> files;
  for (const StoredPiece& piece : tensor.pieces) files.insert(index.files[piece.file].filename());
  return files;
}

std::string tensors_text(const TensorIndex& index) {
  std::vector<TextRow> rows{{"tensor", "type", "shape", "pieces", "in"}};
  for (const auto& [name, tensor] : index.tensors) {
    const std::set<std::string> files = files_of(index, tensor);
    rows.push_back(
        {printable(name), tensor.dtype, shape_text(tensor.shape),
         std::to_string(tensor.pieces.size()),
         *files.begin() + (files.size() > 1 ? " ... " + *files.rbegin() : std::string())});
  }
  align_right(rows, {3});
  return text_table(rows);
}

std::string verification_text(const Inspection& inspection) {
  const Verification& verification = *inspection.verification;
  char speed[64] = "";
  if (verification.seconds > 0)
    std::snprintf(speed, sizeof speed, " in %.2f s (%.2f GB/s)", verification.seconds,
                  static_cast<double>(verification.bytes) / verification.seconds / 1e9);
  std::string text = "read " + with_commas(verification.bytes) + " bytes" + speed;
  if (verification.num_unhashed > 0)
    text += "; " + with_commas(verification.num_unhashed) + " tensors have no recorded hash";
  else if (inspection.damage.empty())
    text += ": every hash agrees";
  return text + "\n";
}

Value list_of(const std::vector<int64_t>& numbers) {
  return Value::List(numbers.begin(), numbers.end());
}

Value texts_value(const std::vector<std::string>& texts) {
  return Value::List(texts.begin(), texts.end());
}

Value manifest_value(const CheckpointManifest& manifest) {
  Value value = Value::map({{"step", manifest.step},
                            {"contents", contents_text(manifest.contents)},
                            {"model", manifest.model},
                            {"flavor", manifest.flavor},
                            {"layout", to_value(manifest.layout)},
                            {"tokens_seen", manifest.tokens_seen},
                            {"tokens_learned", manifest.tokens_learned},
                            {"seed", std::to_string(manifest.seed)},
                            {"time", manifest.time},
                            {"program", manifest.program}});
  if (manifest.lineage.is_known()) value["lineage"] = to_value(manifest.lineage);
  return value;
}

Value tensors_value(const TensorIndex& index) {
  Value::List tensors;
  for (const auto& [name, tensor] : index.tensors) {
    Value::List pieces;
    for (const StoredPiece& piece : tensor.pieces) {
      pieces.push_back(Value::map({{"file", index.files[piece.file].filename().string()},
                                   {"offsets", list_of(piece.offsets)},
                                   {"sizes", list_of(piece.sizes)},
                                   {"position", piece.position},
                                   {"bytes", piece.bytes}}));
      if (!piece.hash.empty()) pieces.back()["xxh3_128"] = piece.hash;
    }
    tensors.push_back(Value::map({{"name", name},
                                  {"dtype", tensor.dtype},
                                  {"shape", list_of(tensor.shape)},
                                  {"pieces", std::move(pieces)}}));
  }
  return tensors;
}

Value steps_value(const Inspection& inspection) {
  Value::List steps;
  for (const InspectedStep& step : inspection.steps)
    steps.push_back(Value::map({{"step", step.step.step},
                                {"format", name_of(step.step.marker)},
                                {"contents", step.contents.empty() ? Value() : step.contents},
                                {"bytes", step.bytes},
                                {"strays", texts_value(step.unlisted)},
                                {"branch", step.branch},
                                {"is_newest", step.is_newest}}));
  return steps;
}

}  // namespace

std::vector<std::string> notes_of(const Inspection& inspection) {
  std::vector<std::string> notes;
  if (inspection.steps.empty() && inspection.marker == Marker::none)
    notes.push_back(
        "neither manifest.json nor an index: it is unknown whether all files are present");
  if (inspection.manifest && !inspection.manifest->carries_hash)
    notes.push_back(
        "its manifest carries no hash of its own, because an older program wrote it: changes of "
        "its step, seed and counts cannot be detected");
  const char* namer = inspection.marker == Marker::manifest ? "its manifest" : "its index";
  if (!inspection.unlisted.empty())
    notes.push_back(unlisted_files_text(inspection.unlisted, namer));
  for (const InspectedStep& step : inspection.steps)
    if (!step.unlisted.empty())
      notes.push_back(step.step.path.filename().string() + ": " +
                      unlisted_files_text(step.unlisted, step.step.marker == Marker::manifest
                                                             ? "its manifest"
                                                             : "its index"));
  return notes;
}

Value to_value(const Inspection& inspection, TensorList tensors) {
  Value value = Value::map({{"path", inspection.path.string()}});
  if (!inspection.steps.empty()) {
    value["steps"] = steps_value(inspection);
  } else {
    if (inspection.manifest) value["manifest"] = manifest_value(*inspection.manifest);
    Value::List files, totals;
    for (const InspectedFile& file : inspection.files)
      files.push_back(Value::map({{"name", file.name},
                                  {"bytes", file.bytes},
                                  {"is_missing", file.is_missing},
                                  {"tensors", file.num_tensors ? *file.num_tensors : Value()}}));
    value["files"] = std::move(files);
    value["lists_its_files"] = inspection.marker != Marker::none;
    value["strays"] = texts_value(inspection.unlisted);
    for (const TensorTotal& total : totals_of(inspection.tensors))
      totals.push_back(Value::map({{"of", total.is_optimizer ? "optimizer" : "weights"},
                                   {"dtype", total.dtype},
                                   {"tensors", total.num_tensors},
                                   {"elements", total.num_elements},
                                   {"bytes", total.bytes}}));
    value["totals"] = std::move(totals);
    if (tensors == TensorList::included) value["tensors"] = tensors_value(inspection.tensors);
  }
  if (inspection.verification)
    value["verification"] = Value::map({{"bytes", inspection.verification->bytes},
                                        {"seconds", inspection.verification->seconds},
                                        {"unhashed", inspection.verification->num_unhashed}});
  value["notes"] = texts_value(notes_of(inspection));
  value["damage"] = texts_value(inspection.damage);
  return value;
}

std::string to_text(const Inspection& inspection, TensorList tensors) {
  std::string text = inspection.path.string() + "\n";
  std::string notes;
  for (const std::string& note : notes_of(inspection)) notes += "  " + note + "\n";
  if (!inspection.steps.empty()) return text + steps_text(inspection) + notes;
  if (inspection.manifest) text += manifest_text(*inspection.manifest);
  text += notes + "\n" + files_text(inspection);
  if (!inspection.tensors.tensors.empty()) {
    text += "\n" + totals_text(totals_of(inspection.tensors));
    if (tensors == TensorList::included) text += "\n" + tensors_text(inspection.tensors);
  }
  if (inspection.verification) text += "\n" + verification_text(inspection);
  return text;
}

}  // namespace titan::commands
