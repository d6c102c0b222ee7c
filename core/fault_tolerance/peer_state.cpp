#include "core/fault_tolerance/peer_state.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <titan/error.h>
#include <titan/files/hash.h>

#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr size_t kMostDifferences = 10;
constexpr size_t kMostMessages = 4;

/// Messages between two ranks, each with its own tag.
class Talk {
 public:
  Talk(const dist::Group& group, int peer, c10::Device device)
      : group_(group), peer_(peer), device_(device) {}

  void say(const std::string& text) {
    start_to_say(text);
    wait_for_sent(0);
  }
  void start_to_say(const std::string& text) {
    at::Tensor length = at::empty({1}, at::kLong);
    length.fill_(static_cast<int64_t>(text.size()));
    start_to_give(length);
    at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
    std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<uint8_t>());
    start_to_give(bytes);
  }

  std::string hear() {
    at::Tensor length = at::empty({1}, at::kLong);
    take(length);
    at::Tensor bytes = at::empty({length.item<int64_t>()}, at::kByte);
    take(bytes);
    const auto* first = bytes.const_data_ptr<uint8_t>();
    return std::string(first, first + bytes.numel());
  }

  /// Starts to send `tensor`, in host memory, as bytes.
  void start_to_give(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    at::Tensor message = tensor.contiguous().view({-1}).view(at::kByte).to(device_);
    in_flight_.push_back({message, group_.send(message, peer_, next_tag_++)});
    wait_for_sent(kMostMessages);
  }
  void wait_for_sent(size_t max_in_flight) {
    while (in_flight_.size() > max_in_flight) {
      in_flight_.front().sent.wait();
      in_flight_.pop_front();
    }
  }

  /// `tensor`: contiguous, in host memory.
  void take(at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    at::Tensor bytes = tensor.view({-1}).view(at::kByte);
    at::Tensor message =
        device_.is_cpu() ? bytes : at::empty(bytes.sizes(), bytes.options().device(device_));
    group_.receive(message, peer_, next_heard_tag_++).wait();
    if (!device_.is_cpu()) bytes.copy_(message);
  }

 private:
  struct Sent {
    at::Tensor message;
    dist::Pending sent;
  };

  const dist::Group& group_;
  int peer_;
  c10::Device device_;
  int next_tag_ = 0, next_heard_tag_ = 0;
  std::deque<Sent> in_flight_;
};

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU).contiguous();
}

std::string hash_of(const at::Tensor& host) {
  return hash_hex({static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
}

/// Dtype and rectangle of `state` as text, equal for equal rectangles.
std::string describe(const StateTensor& state) {
  return titan::detail::concat(state.tensor.scalar_type(), " ", at::IntArrayRef(state.slice.sizes),
                               " at ", at::IntArrayRef(state.slice.offsets), " of ",
                               at::IntArrayRef(state.shape));
}

/// The differences between the tensors of two ranks; empty if there are none.
std::string differences(const std::vector<StateTensor>& tensors, const Value& theirs) {
  std::map<std::string, std::string> missing;
  for (const Value& item : theirs.as_list())
    missing[item.at("name").as_string()] = item.at("what").as_string();
  std::vector<std::string> lines;
  for (const StateTensor& state : tensors) {
    const auto found = missing.find(state.name);
    if (found == missing.end()) {
      lines.push_back("'" + state.name + "' is missing there");
      continue;
    }
    if (found->second != describe(state))
      lines.push_back("'" + state.name + "' is " + found->second + " there and " + describe(state) +
                      " here");
    missing.erase(found);
  }
  for (const auto& [name, what] : missing) lines.push_back("'" + name + "' is missing here");
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kMostDifferences; ++i) text += "\n  " + lines[i];
  if (lines.size() > kMostDifferences)
    text += "\n  ... and " + std::to_string(lines.size() - kMostDifferences) + " more";
  return text;
}

}  // namespace

void give_state(const std::vector<StateTensor>& tensors, const Value& numbers,
                const dist::Group& group, int peer, c10::Device device) {
  at::NoGradGuard no_grad;
  Talk talk(group, peer, device);
  const auto require_consent = [&] {
    if (const std::string refusal = talk.hear(); !refusal.empty())
      fail(ErrorKind::data, "rank ", peer, " of group '", group.name(),
           "' cannot take over this rank's state: ", refusal);
  };
  Value list = Value::list();
  for (const StateTensor& state : tensors)
    list.as_list().push_back(Value::map({{"name", state.name}, {"what", describe(state)}}));
  talk.say(to_json(Value::map({{"tensors", std::move(list)}, {"numbers", numbers}})));
  require_consent();
  for (const StateTensor& state : tensors) {
    const at::Tensor host = on_host(state.tensor);
    talk.start_to_say(hash_of(host));
    talk.start_to_give(host);
  }
  talk.wait_for_sent(0);
  require_consent();
}

Value take_state(const std::vector<StateTensor>& tensors, const dist::Group& group, int peer,
                 c10::Device device) {
  at::NoGradGuard no_grad;
  Talk talk(group, peer, device);
  Value offer = parse_json(talk.hear());
  const std::string different = differences(tensors, offer.at("tensors"));
  talk.say(different);
  const std::string whose =
      titan::detail::concat("the state of rank ", peer, " of group '", group.name(), "'");
  TITAN_CHECK(different.empty(), data, whose, " is not that of this rank:", different);
  std::map<std::string, const StateTensor*> wanted;
  for (const StateTensor& state : tensors) wanted[state.name] = &state;
  std::string damaged;
  for (const Value& item : offer.at("tensors").as_list()) {  // in the sender's order
    const StateTensor& state = *wanted.at(item.at("name").as_string());
    const std::string hash = talk.hear();
    at::Tensor values =
        at::empty(state.tensor.sizes(), at::TensorOptions().dtype(state.tensor.scalar_type()));
    talk.take(values);  // damage does not stop the exchange: the other rank would wait
    if (hash_of(values) == hash)
      state.tensor.copy_(values);
    else
      damaged += "\n  '" + state.name + "' arrived with another hash than it was sent with";
  }
  talk.say(damaged);
  TITAN_CHECK(damaged.empty(), data, whose,
              " arrived damaged; repeat the transfer, from this rank or another:", damaged);
  return std::move(offer["numbers"]);
}

}  // namespace titan::core
