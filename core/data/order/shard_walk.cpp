#include "core/data/order/shard_walk.h"

#include <titan/error.h>

#include "core/data/order/permutation.h"
#include "core/data/order/saved_position.h"

namespace titan::core {

bool ShardWalk::open_shard() {
  const int64_t num_shards = documents_.num_shards();
  if (order_.once && ordinal_ >= num_shards) return false;
  const auto place = static_cast<uint64_t>(ordinal_ % num_shards);
  const auto shard = order_.shuffle
                         ? Permutation(static_cast<uint64_t>(num_shards),
                                       mix(order_.key, static_cast<uint64_t>(epoch())))(place)
                         : place;
  set_stream(documents_.open(static_cast<int64_t>(shard)));
  return true;
}

bool ShardWalk::next(Document* document) {
  int64_t num_ended = 0;
  while (true) {
    if (!stream_ && !open_shard()) return false;
    if (document ? stream_->next(*document) : stream_->skip()) return true;
    set_stream(nullptr);
    ordinal_ += order_.stride;
    // the first shard may have ended after some documents; then a whole epoch of shards had none
    TITAN_CHECK(++num_ended <= documents_.num_shards() + 1, data,
                "none of the shards that a row reads holds a document");
  }
}

Value ShardWalk::position() const {
  Value position = Value::map({{"shard", ordinal_}});
  if (stream_) position["at"] = stream_->position();
  return position;
}

void ShardWalk::seek(const Value& position) {
  const int64_t ordinal = saved_integer(position, "shard", order_.first);
  TITAN_CHECK((ordinal - order_.first) % order_.stride == 0, data,
              "the saved data position is in shard ", ordinal, ", which is not one of ",
              order_.first, ", ", order_.first + order_.stride,
              ", ...: was it saved with another data set?");
  ordinal_ = ordinal;
  set_stream(nullptr);
  const Value* at = position.find("at");
  if (!at) return;
  TITAN_CHECK(open_shard(), data, "the saved data position is after the end of the data");
  stream_->seek(*at);
}

void ShardWalk::set_stream(std::shared_ptr<DocumentStream> stream) {
  const std::lock_guard lock(stream_mutex_);
  stream_ = std::move(stream);
}

std::string ShardWalk::place() const {
  std::shared_ptr<DocumentStream> stream;
  {
    const std::lock_guard lock(stream_mutex_);
    stream = stream_;
  }
  return stream ? stream->place() : "shard " + std::to_string(ordinal_ % documents_.num_shards());
}

}  // namespace titan::core
