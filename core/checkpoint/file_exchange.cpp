#include "core/checkpoint/file_exchange.h"

#include <titan/checkpoints/metadata_texts.h>
#include <titan/dist/shifted_exchange.h>

namespace titan::core {

RankFiles exchange_files(const RankFiles& own, int shift, const dist::Group& world,
                         c10::Device device) {
  dist::TensorMessage message;
  Value files = Value::list();
  for (const ShardFile& file : own.files) {
    const std::string header = header_bytes(file.entries, shard_metadata(file.offsets, {}));
    files.as_list().push_back(Value::list({file.name, file.data_bytes, header.substr(8)}));
    message.tensors.insert(message.tensors.end(), file.tensors.begin(), file.tensors.end());
  }
  message.text = to_json(Value::list(
      {own.rank, own.state_name, own.state_text, own.first_row, own.num_rows, std::move(files)}));
  message = dist::exchange_shifted(message, shift, world, device);

  const Value value = parse_json(message.text);
  const Value::List& members = value.as_list();
  RankFiles theirs = {members[0].as_integer(), {},
                      members[1].as_string(),  members[2].as_string(),
                      members[3].as_integer(), members[4].as_integer()};
  auto tensor = message.tensors.begin();
  for (const Value& file : members[5].as_list()) {
    const Value::List& parts = file.as_list();
    ShardFile& shard = theirs.files.emplace_back();
    shard.name = parts[0].as_string();
    shard.data_bytes = parts[1].as_integer();
    SafetensorsHeader header =
        parse_header_text(parts[2].as_string(), shard.data_bytes, shard.name);
    shard.offsets = parse_sharding(header.metadata.at(kShardingKey), shard.name);
    shard.entries = std::move(header.tensors);
    shard.tensors.assign(tensor, tensor + static_cast<int64_t>(shard.entries.size()));
    tensor += static_cast<int64_t>(shard.entries.size());
  }
  return theirs;
}

}  // namespace titan::core
