// Messages of torchft's LighthouseService as protobuf (proto3) in gRPC frames. Used by the agent's
// rules. tests/plugins/parallelism/replicas compares the bytes with those of Google's protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "membership.h"

namespace titan::replicas {

inline constexpr const char* kHeartbeatPath = "/torchft.LighthouseService/Heartbeat";
inline constexpr const char* kQuorumPath = "/torchft.LighthouseService/Quorum";

/// LighthouseHeartbeatRequest.
std::string heartbeat_request(std::string_view id);
/// LighthouseQuorumRequest. `data` travels as JSON; null as an empty text.
std::string quorum_request(const Member& requester);
/// LighthouseQuorumResponse, except `self`. Sorts the members and makes the epoch. Skips unknown
/// fields. Throws a data Error for bytes that are no such message.
Quorum quorum_response(std::string_view bytes);

/// A message of gRPC: one byte for "not compressed", the length, the message.
std::string grpc_frame(std::string_view message);
/// The message in a frame. Throws a data Error if `body` is not exactly one uncompressed frame.
std::string_view grpc_message(std::string_view body);
/// The text of a grpc-message header: %41 is A. Keeps a malformed escape as it is.
std::string percent_decoded(std::string_view text);

}  // namespace titan::replicas
