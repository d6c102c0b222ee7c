// Pool of scratch buffers for encoding threads. Used by the tokenizer plugins, whose encode() is
// called from several loader threads at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace titan::bpe {

/// Makes as many scratches as threads have encoded at once; they keep their caches warm.
template <class Scratch>
class ScratchPool {
 public:
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

  Lease lend() { return Lease(*this); }

 private:
  std::unique_ptr<Scratch> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Scratch> scratch = std::move(idle_.back());
        idle_.pop_back();
        return scratch;
      }
      // give_back() must not allocate
      idle_.reserve(++num_made_);
    }
    return std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_;
  size_t num_made_ = 0;
};

}  // namespace titan::bpe
