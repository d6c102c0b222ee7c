#include "core/runtime/groups/store_client.h"

#include <future>
#include <thread>
#include <utility>

#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::core {
namespace {

std::vector<uint8_t> store_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}
std::string store_text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

StoreClient::StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds limit,
                         std::function<bool()> is_interrupted)
    : store_(std::move(store)), limit_(limit), is_interrupted_(std::move(is_interrupted)) {}

/// `call` is called with the store.
template <class Call>
auto StoreClient::ask(std::chrono::milliseconds limit, Call call) const {
  std::packaged_task<decltype(call(*store_))()> task(
      [store = store_, call = std::move(call)] { return call(*store); });
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  constexpr auto kLook = std::chrono::milliseconds(50);
  const double give_up = monotonic_seconds() + std::chrono::duration<double>(limit).count();
  while (answer.wait_for(kLook) != std::future_status::ready) {
    TITAN_CHECK(!is_interrupted_ || !is_interrupted_(), distributed,
                "the call to the store was interrupted");
    TITAN_CHECK(monotonic_seconds() < give_up, distributed, "the store gave no answer for ",
                std::chrono::duration_cast<std::chrono::seconds>(limit).count(),
                " s: the process that hosts it is stopped or cannot be reached");
  }
  return answer.get();
}

bool StoreClient::check(const std::vector<std::string>& keys) const {
  return ask(limit_, [keys](c10d::Store& store) { return store.check(keys); });
}

std::string StoreClient::get(const std::string& key) const {
  return store_text(ask(limit_, [key](c10d::Store& store) { return store.get(key); }));
}

void StoreClient::set(const std::string& key, const std::string& text) const {
  ask(limit_, [key, text](c10d::Store& store) { store.set(key, store_bytes(text)); });
}

void StoreClient::erase(const std::string& key) const {
  ask(limit_, [key](c10d::Store& store) { store.deleteKey(key); });
}

std::string StoreClient::set_first(const std::string& key, const std::string& text) const {
  return store_text(ask(limit_, [key, text](c10d::Store& store) {
    return store.compareSet(key, {}, store_bytes(text));
  }));
}

void StoreClient::wait(const std::vector<std::string>& keys, std::chrono::milliseconds time) const {
  ask(time + limit_, [keys, time](c10d::Store& store) { store.wait(keys, time); });
}

}  // namespace titan::core
