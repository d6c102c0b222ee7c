// A stream of a device beside the one that computes. Used for copies that need not hold it up.
#pragma once

#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <titan/export.h>

namespace titan {

/// Whether the device does what it is given later, in streams. A CPU does not, and the meta device
/// does nothing.
TITAN_API bool has_streams(c10::Device device);

/// The stream that the calling thread gives work to. The device has streams.
TITAN_API c10::Stream current_stream(c10::Device device);

/// What `first` has been given so far comes before what `second` is given from now on. The host
/// does not wait.
TITAN_API void put_in_order(const c10::Stream& first, const c10::Stream& second);

/// Empty where the device has no streams: then everything runs where it is called.
class TITAN_API SideStream {
 public:
  enum class Priority { normal, high };
  explicit SideStream(c10::Device device, Priority priority = Priority::normal);
  bool exists() const { return stream_.has_value(); }
  /// The device has streams.
  const c10::Stream& get() const { return *stream_; }

 private:
  std::optional<c10::Stream> stream_;
};

/// While alive, what the calling thread gives to the device goes to `side`, after all that the
/// stream which it left has been given so far. That one does not follow by itself: whatever uses
/// the results there has to be put in order. Memory that is taken belongs to `side`.
class TITAN_API SideStreamScope {
 public:
  /// [trainer thread, or one of autograd's] `side` outlives this.
  explicit SideStreamScope(const SideStream& side);

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace titan
