#include <titan/fault_tolerance/changing_group.h>

#include <mutex>
#include <utility>

#include <titan/error.h>

namespace titan::dist {

/// Forwards every call to the current epoch's backend.
class ChangingGroup::Switch final : public Backend,
                                    public std::enable_shared_from_this<ChangingGroup::Switch> {
 public:
  explicit Switch(OnFailure on_failure)
      : records_(on_failure == OnFailure::records), current_(make_single_rank_backend()) {}

  /// Null: this member alone.
  void use(std::shared_ptr<Backend> backend) {
    if (!backend) backend = make_single_rank_backend();
    if (timeout_) backend->set_timeout(*timeout_);
    std::shared_ptr<Backend> before;  // closed without the lock: that may take a while
    {
      const std::lock_guard lock(mutex_);
      before = std::exchange(current_, std::move(backend));
      failure_.reset();
      ++epoch_;
    }
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  std::shared_ptr<Backend> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  int rank() const override { return current()->rank(); }
  int size() const override { return current()->size(); }

  std::shared_ptr<Work> all_reduce(const at::Tensor& inout, Reduce reduce) override {
    return start([&](Backend& b) { return b.all_reduce(inout, reduce); });
  }
  std::shared_ptr<Work> all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return start([&](Backend& b) { return b.all_gather(out, in); });
  }
  std::shared_ptr<Work> reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                       Reduce reduce) override {
    return start([&](Backend& b) { return b.reduce_scatter(out, in, reduce); });
  }
  std::shared_ptr<Work> all_to_all(const at::Tensor& out, const at::Tensor& in,
                                   const RowSplits& splits) override {
    return start([&](Backend& b) { return b.all_to_all(out, in, splits); });
  }
  std::shared_ptr<Work> broadcast(const at::Tensor& inout, int root) override {
    return start([&](Backend& b) { return b.broadcast(inout, root); });
  }
  std::shared_ptr<Work> send(const at::Tensor& tensor, int peer, int tag) override {
    return start([&](Backend& b) { return b.send(tensor, peer, tag); });
  }
  std::shared_ptr<Work> receive(const at::Tensor& tensor, int peer, int tag) override {
    return start([&](Backend& b) { return b.receive(tensor, peer, tag); });
  }
  std::shared_ptr<Work> barrier() override {
    return start([&](Backend& b) { return b.barrier(); });
  }
  void set_timeout(std::chrono::milliseconds timeout) override {
    timeout_ = timeout;
    current()->set_timeout(timeout);
  }
  void abort(const std::string& reason) override { current()->abort(reason); }

 private:
  /// A collective of one epoch.
  class Recorded final : public Work {
   public:
    Recorded(std::shared_ptr<Work> work, std::shared_ptr<Switch> group, int64_t epoch)
        : work_(std::move(work)), group_(std::move(group)), epoch_(epoch) {}
    void wait() override {
      try {
        work_->wait();
      } catch (const std::exception& e) {
        group_->record(e.what(), epoch_);
      }
    }

   private:
    std::shared_ptr<Work> work_;
    std::shared_ptr<Switch> group_;
    int64_t epoch_;
  };

  template <class Start>
  std::shared_ptr<Work> start(const Start& start) {
    if (!records_) return start(*current());
    const int64_t epoch = epoch_;
    if (failure()) return nullptr;
    try {
      std::shared_ptr<Work> work = start(*current());
      return work ? std::make_shared<Recorded>(std::move(work), shared_from_this(), epoch)
                  : nullptr;
    } catch (const std::exception& e) {  // transports fail in the call as well as in the wait
      record(e.what(), epoch);
      return nullptr;
    }
  }

  /// A failure of an earlier epoch does not concern the current one.
  void record(const std::string& error, int64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (epoch == epoch_ && !failure_) failure_ = error.substr(0, error.find('\n'));
  }

  const bool records_;
  mutable std::mutex mutex_;
  std::shared_ptr<Backend> current_;
  std::optional<std::string> failure_;
  std::optional<std::chrono::milliseconds> timeout_;
  int64_t epoch_ = 0;
};

/// Forwards to the current epoch's backend without recording failures.
class ChangingGroup::Strict final : public Backend {
 public:
  explicit Strict(std::shared_ptr<Switch> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::shared_ptr<Work> all_reduce(const at::Tensor& inout, Reduce reduce) override {
    return now()->all_reduce(inout, reduce);
  }
  std::shared_ptr<Work> all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return now()->all_gather(out, in);
  }
  std::shared_ptr<Work> reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                       Reduce reduce) override {
    return now()->reduce_scatter(out, in, reduce);
  }
  std::shared_ptr<Work> all_to_all(const at::Tensor& out, const at::Tensor& in,
                                   const RowSplits& splits) override {
    return now()->all_to_all(out, in, splits);
  }
  std::shared_ptr<Work> broadcast(const at::Tensor& inout, int root) override {
    return now()->broadcast(inout, root);
  }
  std::shared_ptr<Work> send(const at::Tensor& tensor, int peer, int tag) override {
    return now()->send(tensor, peer, tag);
  }
  std::shared_ptr<Work> receive(const at::Tensor& tensor, int peer, int tag) override {
    return now()->receive(tensor, peer, tag);
  }
  std::shared_ptr<Work> barrier() override { return now()->barrier(); }
  void set_timeout(std::chrono::milliseconds timeout) override { group_->set_timeout(timeout); }
  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  std::shared_ptr<Backend> now() const { return group_->current(); }

  std::shared_ptr<Switch> group_;
};

ChangingGroup::ChangingGroup(std::string name, Connect connect, OnFailure on_failure,
                             std::shared_ptr<Recorder> recorder)
    : connect_(std::move(connect)),
      switch_(std::make_shared<Switch>(on_failure)),
      group_(name, switch_, recorder),
      strict_(std::move(name), std::make_shared<Strict>(switch_), std::move(recorder)) {}

ChangingGroup::~ChangingGroup() = default;

const Group& ChangingGroup::group() const {
  return group_;
}

const Group& ChangingGroup::strict() const {
  return strict_;
}

const Membership& ChangingGroup::members() const {
  return members_;
}

std::optional<std::string> ChangingGroup::failure() const {
  return switch_->failure();
}

void ChangingGroup::change(const Membership& members) {
  TITAN_ASSERT(members.size > 0 && members.rank >= 0 && members.rank < members.size, members.rank,
               " of ", members.size);
  TITAN_ASSERT(members.epoch != members_.epoch || !failure(), "epoch '", members.epoch,
               "' of group '", group_.name(), "' has failed: its members must start a new one");
  if (members.epoch == members_.epoch) return;
  members_ = {};
  switch_->use(nullptr);  // the old members are left before the new ones connect
  if (members.size > 1) switch_->use(connect_(members));
  members_ = members;
}

}  // namespace titan::dist
