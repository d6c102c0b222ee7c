// The channel between `titan launch --in-process` and each process that it starts: a socket that
// keeps the borders of messages. The launcher begins and aborts rounds of training, the process
// reports how a round went for it. Used by titan launch and by titan train.
#pragma once

#include <optional>
#include <string>

#include <titan/export.h>
#include <titan/program/descriptor.h>

TITAN_OPTIONAL_HEADER(rank_control);

namespace titan {

struct ControlMessage {
  enum class Kind {
    begin,     ///< to a process: train as `rank`, with the ranks' store at 127.0.0.1:`port`
    abort,     ///< to a process: leave this round, because of `text`
    end,       ///< to a process that is ready: exit
    training,  ///< from a process: it has built its part of the run
    failed,    ///< from a process: its part of the round failed with the error `text`
    ready,     ///< from a process: nothing of the round is left, it waits; `round` -1: of none yet
  };
  Kind kind = Kind::ready;
  int round = -1;  ///< 0: the first start of the ranks
  int rank = 0;
  int port = 0;
  std::string text = {};
};

/// One end of the channel.
class TITAN_API ControlEnd {
 public:
  ControlEnd() = default;
  explicit ControlEnd(Descriptor socket) : socket_(std::move(socket)) {}

  /// The end that this process got from its launcher; absent if there is none. Later programs that
  /// this process starts do not get it. Throws an io Error if the variable names no socket.
  static std::optional<ControlEnd> of_process();

  /// Readable if a message has arrived, or if the other process has ended.
  int descriptor() const { return socket_.get(); }
  /// Long texts are cut. Returns false if the other process has ended, or takes no more messages.
  bool send(const ControlMessage& message);
  /// The next message; absent if none has arrived. Throws an io Error for what is no message.
  std::optional<ControlMessage> receive();
  /// Whether the other process has ended; known after `receive`.
  bool is_closed() const { return is_closed_; }
  void close() { socket_.close(); }

 private:
  Descriptor socket_;
  bool is_closed_ = false;
};

/// Both ends. A program that this process starts inherits `of_rank`, which is to be closed here
/// then.
struct ControlPair {
  static constexpr const char* kVariable = "TITAN_CONTROL_SOCKET";  ///< holds the number of of_rank

  ControlEnd of_launcher;
  Descriptor of_rank;
};

/// Throws an io Error.
TITAN_API ControlPair make_control_pair();

}  // namespace titan
