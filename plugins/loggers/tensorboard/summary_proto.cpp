// See summary_proto.h. Field numbers are those of TensorFlow's event.proto, summary.proto and
// tensor.proto, and of TensorBoard's hparams/plugin_data.proto, hparams/api.proto and
// custom_scalar/layout.proto.
#include "summary_proto.h"

#include <algorithm>
#include <bit>

#include "../common/protobuf.h"

namespace titan::loggers {
namespace {

constexpr int kDataClassTensor = 2;

Message event_of(double wall_time, int64_t step, const Message& summary) {
  Message event;
  event.number(1, wall_time);
  if (step != 0) event.integer(2, step);
  return event.message(5, summary);
}

Message metadata_of(std::string_view plugin, std::string_view content) {
  Message plugin_data;
  plugin_data.bytes(1, plugin);
  if (!content.empty()) plugin_data.bytes(2, content);
  return Message().message(1, plugin_data).integer(4, kDataClassTensor);
}

Message shape_of(std::initializer_list<size_t> sizes) {
  Message shape;
  for (const size_t size : sizes)
    shape.message(2, Message().integer(1, static_cast<int64_t>(size)));
  return shape;
}

/// (buckets, 3): left edge, right edge, count.
Message buckets_of(const Histogram& histogram) {
  constexpr int kDouble = 2;
  const size_t buckets =
      std::min(histogram.counts.size(), histogram.edges.empty() ? 0 : histogram.edges.size() - 1);
  std::string content;
  const auto append = [&](double number) {
    const auto bits = std::bit_cast<uint64_t>(number);
    for (int i = 0; i < 8; ++i) content += static_cast<char>(bits >> (8 * i));
  };
  for (size_t i = 0; i < buckets; ++i) {
    append(histogram.edges[i]);
    append(histogram.edges[i + 1]);
    append(histogram.counts[i]);
  }
  return Message().integer(1, kDouble).message(2, shape_of({buckets, 3})).bytes(4, content);
}

/// HParams are in the metadata; the Python loader needs a tensor too, even an empty one.
std::string hparams_event(double wall_time, std::string_view tag, const Message& content) {
  const Message metadata = metadata_of("hparams", content.str());
  constexpr int kFloat = 1;
  const Message tensor = Message().integer(1, kFloat).message(2, shape_of({0}));
  const Message value = Message().bytes(1, tag).message(8, tensor).message(9, metadata);
  return event_of(wall_time, 0, Message().message(1, value)).str();
}

}  // namespace

std::string histograms_event(double wall_time, int64_t step,
                             std::span<const Histogram> histograms) {
  Message summary;
  for (const Histogram& histogram : histograms)
    summary.message(1, Message()
                           .bytes(1, histogram.tag)
                           .message(8, buckets_of(histogram))
                           .message(9, metadata_of("histograms", "")));
  return event_of(wall_time, step, summary).str();
}

std::string hparams_start_event(double start_time, const Hparams& hparams) {
  Message start;
  for (const auto& [name, value] : hparams) {
    Message content;
    if (value.is_integer() || value.is_number())
      content.number(2, value.as_number());
    else if (value.is_string())
      content.bytes(3, value.as_string());
    else if (value.is_boolean())
      content.integer(4, value.as_boolean() ? 1 : 0);
    else
      continue;
    start.message(1, Message().bytes(1, name).message(2, content));
  }
  start.number(5, start_time);
  return hparams_event(start_time, "_hparams_/session_start_info", Message().message(3, start));
}

std::string hparams_end_event(double end_time, RunOutcome outcome) {
  constexpr int kUnknown = 0, kSuccess = 1, kFailure = 2;
  const int status = outcome == RunOutcome::finished ? kSuccess
                     : outcome == RunOutcome::failed ? kFailure
                                                     : kUnknown;
  const Message end = Message().integer(1, status).number(2, end_time);
  return hparams_event(end_time, "_hparams_/session_end_info", Message().message(4, end));
}

std::string custom_scalars_event(double wall_time, int64_t step, const std::string& category,
                                 std::span<const Chart> charts) {
  constexpr int kString = 7;
  Message content = Message().bytes(1, category);
  for (const Chart& chart : charts) {
    Message multiline;
    for (const std::string& tag : chart.tags) multiline.bytes(1, "^" + tag + "$");
    content.message(2, Message().bytes(1, chart.title).message(2, multiline));
  }
  const Message layout = Message().message(2, content);
  const Message tensor =
      Message().integer(1, kString).message(2, shape_of({})).bytes(8, layout.str());
  const Message value = Message()
                            .bytes(1, "custom_scalars__config__")
                            .message(8, tensor)
                            .message(9, metadata_of("custom_scalars", ""));
  return event_of(wall_time, step, Message().message(1, value)).str();
}

}  // namespace titan::loggers
