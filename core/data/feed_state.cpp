#include "core/data/feed_state.h"

#include <titan/error.h>

#include "core/data/order/saved_position.h"

namespace titan::core {
namespace {

constexpr const char* kHint =
    "; continue with the same data, or set checkpoint.exclude_from_loading = [\"dataloader\"] to "
    "start "
    "with this data from its beginning";

std::string shown(const Value* value) {
  return value ? to_json(*value) : "nothing";
}

/// Empty in positions of older programs.
std::vector<int64_t> saved_epochs(const Value& stream) {
  std::vector<int64_t> epochs;
  if (!stream.find("epochs")) return epochs;
  for (const Value& epoch : saved_list(stream, "epochs")) {
    TITAN_CHECK(epoch.is_integer() && epoch.as_integer() >= 0, data,
                "the saved data position has an epoch that is not an integer >= 0");
    epochs.push_back(epoch.as_integer());
  }
  return epochs;
}

}  // namespace

FeedState FeedState::from_value(const Value& value) {
  FeedState state;
  state.num_windows = saved_integer(value, "num_windows");
  state.num_streams = saved_integer(value, "num_streams", 1);
  state.packing = saved_text(value, "packing");
  state.tokenizer = saved_text(value, "tokenizer");
  state.sources = Value(saved_list(value, "sources"));
  for (const Value& stream : saved_list(value, "lanes"))
    state.streams.push_back({.stream = saved_integer(stream, "stream"),
                             .next = saved_integer(stream, "next"),
                             .packer = saved_member(stream, "packer"),
                             .epochs = saved_epochs(stream)});
  return state;
}

Value FeedState::to_value() const {
  Value::List all;
  for (const StreamPosition& stream : streams) {
    Value::List epochs;
    for (const int64_t epoch : stream.epochs) epochs.emplace_back(epoch);
    all.push_back(Value::map({{"stream", stream.stream},
                              {"next", stream.next},
                              {"packer", stream.packer},
                              {"epochs", Value(std::move(epochs))}}));
  }
  return Value::map({{"num_windows", num_windows},
                     {"num_streams", num_streams},
                     {"packing", packing},
                     {"tokenizer", tokenizer},
                     {"sources", sources},
                     {"lanes", std::move(all)}});
}

void check_same_data(const FeedState& saved, const FeedState& now) {
  TITAN_CHECK(saved.packing == now.packing, config, "the checkpoint's data was packed with ",
              saved.packing, ", this run packs with ", now.packing, kHint);
  TITAN_CHECK(saved.tokenizer == now.tokenizer, config,
              "the checkpoint's data was read by another tokenizer than this run's (hash ",
              saved.tokenizer, ", now ", now.tokenizer, ")", kHint);
  const Value::List& theirs = saved.sources.as_list();
  const Value::List& ours = now.sources.as_list();
  TITAN_CHECK(theirs.size() == ours.size(), config, "the checkpoint's data was blended from ",
              theirs.size(), " sources, this run's from ", ours.size(), kHint);
  for (size_t i = 0; i < ours.size(); ++i)
    for (const char* member : {"name", "weight", "fingerprint"}) {
      const Value *was = theirs[i].find(member), *is = ours[i].find(member);
      TITAN_CHECK(was && is && *was == *is, config, "source ", shown(ours[i].find("name")), " has ",
                  member, " ", shown(is), ", in the checkpoint it had ", shown(was), kHint);
    }
}

}  // namespace titan::core
