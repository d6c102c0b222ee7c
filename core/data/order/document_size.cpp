#include "core/data/order/document_size.h"

namespace titan::core {
namespace {

size_t bytes_of_value(const Value& value) {
  size_t bytes = sizeof value;
  if (value.is_string()) bytes += value.as_string().size();
  if (value.is_list())
    for (const Value& item : value.as_list()) bytes += bytes_of_value(item);
  if (value.is_map())
    for (const auto& [name, member] : value.as_map()) bytes += name.size() + bytes_of_value(member);
  return bytes;
}

}  // namespace

size_t content_bytes(const Document& document) {
  size_t bytes = document.text.size() + sizeof(int32_t) * document.tokens.size();
  for (const Conversation& conversation : document.conversations)
    bytes += bytes_of_value(conversation.chat) + conversation.prompt.size() +
             conversation.completion.size();
  return bytes;
}

}  // namespace titan::core
