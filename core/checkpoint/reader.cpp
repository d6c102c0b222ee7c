#include "core/checkpoint/reader.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <numeric>
#include <tuple>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <titan/error.h>

#include <titan/program/stop_signals.h>
#include "core/checkpoint/pieces.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr size_t kMostListed = 10;

/// Plans on all ranks which rank reads each piece and sends it to which others, and carries that
/// out.
class Exchange {
 public:
  Exchange(const TensorIndex& index, std::vector<Piece> pieces, std::vector<Need> own_needs,
           const dist::Group& world, c10::Device device)
      : index_(index),
        pieces_(std::move(pieces)),
        own_needs_(std::move(own_needs)),
        world_(world),
        device_(device) {}

  LoadStats run() {
    const std::vector<int64_t> counts = count_needs();
    std::vector<Need> shared_own, alone;
    for (const Need& need : own_needs_)
      (counts[static_cast<size_t>(need.piece)] > 1 || reader_of(need.piece) != world_.rank()
           ? shared_own
           : alone)
          .push_back(need);
    read_alone(std::move(alone));
    if (!index_.readers.empty() ||
        std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count > 1; }))
      share(gather(shared_own), shared_own);
    end_together();
    return stats_;
  }

 private:
  /// Throws on all ranks if any failed. Damage does not stop the exchange earlier, because other
  /// ranks would wait for data that never arrives.
  void end_together() const {
    const int64_t num_failed =
        world_.all_reduce(int64_t{error_ != nullptr}, dist::Reduce::sum, device_);
    if (error_) std::rethrow_exception(error_);
    TITAN_CHECK(num_failed == 0, data, num_failed,
                " other ranks found stored tensors that cannot be used; see their logs");
  }

  /// The rank that must read the piece; this rank if any rank can.
  int reader_of(int64_t piece) const {
    if (index_.readers.empty()) return world_.rank();
    const int file = pieces_[static_cast<size_t>(piece)].stored->file;
    return static_cast<int>(index_.readers[static_cast<size_t>(file)]);
  }

  /// Remembers the first error of `work`.
  template <class Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }

  /// The number of ranks that need each piece.
  std::vector<int64_t> count_needs() const {
    at::Tensor counts =
        at::zeros({static_cast<int64_t>(pieces_.size())}, at::TensorOptions().dtype(at::kLong));
    for (const Need& need : own_needs_) counts.mutable_data_ptr<int64_t>()[need.piece] += 1;
    at::Tensor shared = counts.to(device_);
    if (!pieces_.empty()) world_.all_reduce(shared, dist::Reduce::sum).wait();
    counts = shared.cpu();
    const int64_t* data = counts.const_data_ptr<int64_t>();
    return {data, data + pieces_.size()};
  }

  /// Reads pieces that only this rank needs, in their order on the disk.
  void read_alone(std::vector<Need> needs) {
    const auto place = [this](const Need& need) {
      const StoredPiece& stored = *pieces_[static_cast<size_t>(need.piece)].stored;
      return std::make_pair(stored.file, stored.position);
    };
    std::sort(needs.begin(), needs.end(),
              [&](const Need& a, const Need& b) { return place(a) < place(b); });
    std::deque<std::future<void>> reading;
    for (const Need& need : needs) {
      if (reading.size() == kReadsAtOnce) {
        attempt([&] { reading.front().get(); });
        reading.pop_front();
      }
      const Piece& piece = pieces_[static_cast<size_t>(need.piece)];
      stats_.bytes_read += piece.stored->bytes;
      reading.push_back(std::async(std::launch::async, [this, &need, &piece] {
        block_signals();
        at::NoGradGuard no_grad;
        read_into(need, piece, index_);
      }));
    }
    for (std::future<void>& read : reading) attempt([&] { read.get(); });
  }

  /// The needs of all ranks for pieces that several ranks need, by piece, then by rank.
  std::vector<Need> gather(const std::vector<Need>& shared_own) const {
    size_t num_dims = 1;
    for (const Piece& piece : pieces_) num_dims = std::max(num_dims, piece.stored->sizes.size());
    const int64_t row_length = static_cast<int64_t>(1 + 2 * num_dims);
    const int64_t num_rows =
        world_.all_reduce(static_cast<int64_t>(shared_own.size()), dist::Reduce::max, device_);

    at::Tensor own = at::full({num_rows, row_length}, -1, at::TensorOptions().dtype(at::kLong));
    int64_t* out = own.mutable_data_ptr<int64_t>();
    for (const Need& need : shared_own) {
      out[0] = need.piece;
      std::copy(need.slice.offsets.begin(), need.slice.offsets.end(), out + 1);
      std::copy(need.slice.sizes.begin(), need.slice.sizes.end(), out + 1 + num_dims);
      out += row_length;
    }
    at::Tensor all = at::empty({world_.size() * num_rows, row_length},
                               at::TensorOptions().dtype(at::kLong).device(device_));
    world_.all_gather(all, own.to(device_)).wait();
    all = all.cpu();

    std::vector<Need> needs;
    const int64_t* row = all.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < all.size(0); ++i, row += row_length) {
      if (row[0] < 0) continue;
      const size_t rank_of_tensor = pieces_[static_cast<size_t>(row[0])].stored->sizes.size();
      Need need = {.piece = row[0], .rank = static_cast<int>(i / num_rows)};
      need.slice.offsets.assign(row + 1, row + 1 + rank_of_tensor);
      need.slice.sizes.assign(row + 1 + num_dims, row + 1 + num_dims + rank_of_tensor);
      needs.push_back(std::move(need));
    }
    std::stable_sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) {
      return std::tie(a.piece, a.rank) < std::tie(b.piece, b.rank);
    });
    return needs;
  }

  /// Each piece is read by the rank that has read the least so far among those that need it. All
  /// ranks exchange pieces in the same order, which avoids deadlock.
  void share(const std::vector<Need>& needs, const std::vector<Need>& shared_own) {
    std::vector<int64_t> load(static_cast<size_t>(world_.size()), 0);
    std::map<int64_t, int> readers;
    std::vector<Piece> mine;
    for (size_t first = 0; first < needs.size();) {
      const int64_t piece = needs[first].piece;
      size_t last = first;
      int reader = needs[first].rank;
      for (; last < needs.size() && needs[last].piece == piece; ++last)
        if (load[static_cast<size_t>(needs[last].rank)] < load[static_cast<size_t>(reader)])
          reader = needs[last].rank;
      if (!index_.readers.empty()) reader = reader_of(piece);
      load[static_cast<size_t>(reader)] += pieces_[static_cast<size_t>(piece)].stored->bytes;
      readers[piece] = reader;
      if (reader == world_.rank()) mine.push_back(pieces_[static_cast<size_t>(piece)]);
      first = last;
    }

    std::map<int64_t, const Need*> own;
    for (const Need& need : shared_own) own[need.piece] = &need;
    PieceReader reader(mine, index_);
    for (size_t i = 0; i < needs.size();) {
      size_t last = i;
      while (last < needs.size() && needs[last].piece == needs[i].piece) ++last;
      if (readers[needs[i].piece] == world_.rank())
        send(next_of(reader, pieces_[static_cast<size_t>(needs[i].piece)]),
             {needs.begin() + static_cast<int64_t>(i), needs.begin() + static_cast<int64_t>(last)},
             own);
      else if (const auto found = own.find(needs[i].piece); found != own.end())
        receive(*found->second, readers[needs[i].piece]);
      i = last;
    }
    wait_for_sent(0);
  }

  at::Tensor next_of(PieceReader& reader, const Piece& piece) {
    at::Tensor values;
    attempt([&] { values = reader.next(); });
    if (values.defined()) return values;
    return at::zeros(piece.stored->sizes,
                     at::TensorOptions().dtype(scalar_type(piece.tensor->dtype)));
  }

  void send(const at::Tensor& values, const std::vector<Need>& needs,
            const std::map<int64_t, const Need*>& own) {
    const Piece& piece = pieces_[static_cast<size_t>(needs.front().piece)];
    stats_.bytes_read += piece.stored->bytes;
    for (const Need& need : needs) {
      const at::Tensor part = part_of(values, piece.stored->offsets, need.slice);
      if (need.rank == world_.rank()) {
        fill(*own.at(need.piece), part);
        continue;
      }
      at::Tensor message = bytes_of(part).to(device_);
      sent_.push_back(world_.send(message, need.rank, tag(need.piece)));
    }
    wait_for_sent(kMaxInFlight);
  }

  void receive(const Need& need, int from) {
    const at::ScalarType dtype =
        scalar_type(pieces_[static_cast<size_t>(need.piece)].tensor->dtype);
    at::Tensor values = at::empty(need.slice.sizes, at::TensorOptions().dtype(dtype));
    at::Tensor message = at::empty({static_cast<int64_t>(values.nbytes())},
                                   at::TensorOptions().dtype(at::kByte).device(device_));
    world_.receive(message, from, tag(need.piece)).wait();
    stats_.bytes_received += message.numel();
    bytes_of(values).copy_(message);
    fill(need, values);
  }

  /// Tensors of any dtype are sent as bytes; a view of a contiguous tensor.
  static at::Tensor bytes_of(const at::Tensor& tensor) {
    return tensor.contiguous().view({-1}).view(at::kByte);
  }
  static int tag(int64_t piece) { return static_cast<int>(piece % (1 << 30)); }

  void wait_for_sent(size_t max_in_flight) {
    while (sent_.size() > max_in_flight) {
      sent_.front().wait();
      sent_.pop_front();
    }
  }

  static constexpr size_t kMaxInFlight = 16;

  const TensorIndex& index_;
  std::vector<Piece> pieces_;
  std::vector<Need> own_needs_;
  const dist::Group& world_;
  c10::Device device_;
  std::deque<dist::Pending> sent_;
  std::exception_ptr error_;  // the first
  LoadStats stats_;
};

}  // namespace

void check_fits(const TensorIndex& index, const std::vector<StateTensor>& wanted,
                const std::string& what) {
  std::vector<std::string> problems;
  for (const StateTensor& item : wanted) {
    const auto found = index.tensors.find(item.name);
    if (found == index.tensors.end())
      problems.push_back("'" + item.name + "' is missing");
    else if (found->second.shape != item.shape)
      problems.push_back(titan::detail::concat("'", item.name, "' has shape ",
                                               at::IntArrayRef(found->second.shape),
                                               ", this run's is ", at::IntArrayRef(item.shape)));
  }
  if (problems.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kMostListed); ++i) text += "\n  " + problems[i];
  if (problems.size() > kMostListed)
    text += "\n  ... and " + std::to_string(problems.size() - kMostListed) + " more";
  fail(ErrorKind::data, what, " does not fit this run's model and optimizer; ", problems.size(),
       " of ", wanted.size(), " tensors:", text);
}

LoadStats load_tensors(const TensorIndex& index, const std::vector<StateTensor>& wanted,
                       const StoredName& stored_name, const dist::Group& world,
                       c10::Device device) {
  at::NoGradGuard no_grad;
  std::vector<Piece> pieces;
  std::map<std::string_view, int64_t> first_piece;
  for (const auto& [name, tensor] : index.tensors) {
    first_piece[name] = static_cast<int64_t>(pieces.size());
    for (const StoredPiece& stored : tensor.pieces) pieces.push_back({&name, &tensor, &stored});
  }
  std::vector<Need> needs;
  int64_t num_converted = 0;
  for (const StateTensor& item : wanted) {
    const std::string name = stored_name(item.name);
    const StoredTensor& tensor = index.tensors.find(name)->second;
    num_converted += scalar_type(tensor.dtype) != item.tensor.scalar_type();
    for (size_t i = 0; i < tensor.pieces.size(); ++i)
      if (auto common = overlap(item.slice, tensor.pieces[i]))
        needs.push_back({first_piece.at(name) + static_cast<int64_t>(i), world.rank(),
                         std::move(*common), &item});
  }
  LoadStats stats = Exchange(index, std::move(pieces), std::move(needs), world, device).run();
  stats.num_converted = num_converted;
  return stats;
}

}  // namespace titan::core
