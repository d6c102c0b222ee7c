#include "piecewise.h"

#include <ATen/ops/empty.h>

#include <titan/error.h>
#include <titan/ops/mm.h>

namespace titan::tensor_parallel {
namespace {

using at::Tensor;

constexpr int kNumTags = 1 << 20;

/// Piece `rank` of a sequence: (B, S, n) -> (B, S/T, n) view.
Tensor piece_of(const Tensor& x, int64_t rank, int64_t size) {
  return x.narrow(1, rank * size, size);
}

/// out (B, s, m) = x (B, s, n) · matrix, or += it. Multiplies each row of the batch separately:
/// only within a row is a piece of a longer sequence contiguous, so that it can be written in
/// place.
void multiply(const Tensor& x, const Tensor& matrix, const Tensor& out, bool adds) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const Tensor out_row = out[row];
    if (adds)
      ops::add_mm_to(out_row, x[row], matrix);
    else
      ops::mm_into(out_row, x[row], matrix);
  }
}

/// (T, B, s, n) -> (B, T · s, n); no copy for a batch of one row.
Tensor join(const Tensor& pieces) {
  return pieces.transpose(0, 1).reshape(
      {pieces.size(1), pieces.size(0) * pieces.size(2), pieces.size(3)});
}

}  // namespace

std::vector<int> PieceLink::peers() const {
  const int rank = group_.rank(), size = group_.size();
  std::vector<int> order;
  for (int step = 0; step < size; ++step) {
    const int peer = (step - rank + size) % size;
    if (peer != rank) order.push_back(peer);
  }
  return order;
}

int PieceLink::next_tag() {
  last_tag_ = (last_tag_ + 1) % kNumTags;
  return last_tag_;
}

PieceLink::Exchange PieceLink::exchange(int peer, const Tensor& out, const Tensor& in,
                                        int tag) const {
  Exchange exchange;
  if (group_.rank() < peer) exchange.sent = group_.send(out, peer, tag);
  exchange.received = group_.receive(in, peer, tag);
  if (group_.rank() > peer) exchange.sent = group_.send(out, peer, tag);
  return exchange;
}

GatheredProducts gather_multiply(const Tensor& x, const std::vector<Tensor>& matrices,
                                 PieceLink& link) {
  const Tensor own = x.contiguous();
  const int64_t batch = own.size(0), size = own.size(1), num_ranks = link.group().size();
  const Tensor pieces = at::empty({num_ranks, batch, size, own.size(2)}, own.options());
  const std::vector<int> peers = link.peers();
  const int tag = link.next_tag();
  std::vector<PieceLink::Exchange> in_flight;
  for (const int peer : peers) in_flight.push_back(link.exchange(peer, own, pieces[peer], tag));

  GatheredProducts result;
  for (const Tensor& matrix : matrices)
    result.products.push_back(at::empty({batch, num_ranks * size, matrix.size(1)}, own.options()));
  const auto multiply_piece = [&](const Tensor& piece, int rank) {
    for (size_t i = 0; i < matrices.size(); ++i)
      multiply(piece, matrices[i], piece_of(result.products[i], rank, size), /*adds=*/false);
  };
  pieces[link.group().rank()].copy_(own);
  multiply_piece(own, link.group().rank());
  for (size_t i = 0; i < peers.size(); ++i) {
    in_flight[i].received.wait();
    multiply_piece(pieces[peers[i]], peers[i]);
  }
  for (PieceLink::Exchange& exchange : in_flight) exchange.sent.wait();
  result.whole = join(pieces);
  return result;
}

ScatteredProduct::ScatteredProduct(const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& matrices, PieceLink& link) {
  const Tensor& first = inputs.front();
  const int64_t num_ranks = link.group().size();
  TITAN_CHECK(first.size(1) % num_ranks == 0, config, "a sequence of ", first.size(1),
              " tokens cannot be cut into ", num_ranks, " equal parts over group '",
              link.group().name(), "'");
  const int64_t size = first.size(1) / num_ranks;
  const std::vector<int64_t> shape = {first.size(0), size, matrices.front().size(1)};
  pieces_ = at::empty({num_ranks, shape[0], shape[1], shape[2]}, first.options());
  const auto multiply_piece = [&](int rank, const Tensor& out) {
    for (size_t i = 0; i < inputs.size(); ++i)
      multiply(piece_of(inputs[i], rank, size), matrices[i], out, /*adds=*/i > 0);
  };
  const int tag = link.next_tag();
  for (const int peer : link.peers()) {
    const Tensor piece = at::empty(shape, first.options());
    multiply_piece(peer, piece);
    in_flight_.push_back(link.exchange(peer, piece, pieces_[peer], tag));
  }
  multiply_piece(link.group().rank(), pieces_[link.group().rank()]);
}

Tensor ScatteredProduct::finish() {
  for (PieceLink::Exchange& exchange : in_flight_) {
    exchange.received.wait();
    exchange.sent.wait();
  }
  in_flight_.clear();
  if (at::isReducedFloatingType(pieces_.scalar_type()))
    return pieces_.to(at::kFloat).sum(0).to(pieces_.scalar_type());
  Tensor total = pieces_[0].clone();
  for (int64_t rank = 1; rank < pieces_.size(0); ++rank) total.add_(pieces_[rank]);
  return total;
}

}  // namespace titan::tensor_parallel
