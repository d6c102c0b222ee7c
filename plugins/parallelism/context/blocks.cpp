#include "blocks.h"

#include <algorithm>
#include <limits>

namespace titan::context_parallel {
namespace {

/// The part of a row's attention matrix that one rank computes.
struct Rectangle {
  Range queries, keys;
  int64_t start = 0;  // of their document, if requested

  bool operator==(const Rectangle&) const = default;
};

/// One rectangle per run of equal numbers.
std::vector<Rectangle> own_documents(const int32_t* documents, int64_t n) {
  std::vector<Rectangle> found;
  for (int64_t first = 0; first < n;) {
    const int64_t end = std::find_if(documents + first, documents + n,
                                     [&](int32_t number) { return number != documents[first]; }) -
                        documents;
    found.push_back({{first, end - first}, {first, end - first}});
    first = end;
  }
  return found;
}

/// `queries` and `keys`: document numbers of this rank's and the other rank's tokens.
std::vector<Rectangle> shared_document(const Sight& sight, const int32_t* queries,
                                       const int32_t* keys) {
  if (sight.keys.count == 0 || sight.queries.count == 0) return {};
  const int32_t* const keys_end = keys + sight.keys.first + sight.keys.count;
  const int32_t* const queries_begin = queries + sight.queries.first;
  const int32_t last = keys_end[-1];
  const auto num_keys = keys_end - std::lower_bound(keys + sight.keys.first, keys_end, last);
  const auto num_queries =
      std::upper_bound(queries_begin, queries_begin + sight.queries.count, last) - queries_begin;
  if (num_queries == 0) return {};
  return {{{sight.queries.first, num_queries}, {keys_end - keys - num_keys, num_keys}}};
}

/// The index in its row at which document `number` begins; `documents` of the row, in rank order.
int64_t start_of(int32_t number, const int32_t* documents, const std::vector<at::Tensor>& places) {
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const at::Tensor& of_rank : places) {
    const int32_t* const end = documents + of_rank.numel();
    const int32_t* const found = std::lower_bound(documents, end, number);
    if (found != end && *found == number)
      start = std::min(start, of_rank.const_data_ptr<int64_t>()[found - documents]);
    documents = end;
  }
  return start;
}

}  // namespace

at::Tensor Block::queries_of(const at::Tensor& x) const {
  return x.narrow(0, rows.first, rows.count).narrow(2, queries.first, queries.count);
}

at::Tensor Block::keys_of(const at::Tensor& x) const {
  return x.narrow(0, rows.first, rows.count).narrow(2, keys.first, keys.count);
}

std::vector<Block> visible_blocks(const SequenceCut& cut, int64_t rank, int64_t source,
                                  int64_t num_rows, int64_t n, const at::Tensor& documents,
                                  const std::vector<at::Tensor>& places) {
  const Sight sight = cut.sight(rank, source, n);
  if (!documents.defined()) {
    if (sight.keys.count == 0 || sight.queries.count == 0) return {};
    return {{{0, num_rows}, sight.queries, sight.keys, sight.causal}};
  }
  const at::Tensor numbers = documents.contiguous();
  std::vector<Block> blocks;
  std::vector<Rectangle> above;  // of the rows since `first_row`
  int64_t first_row = 0;
  const auto add_blocks = [&](int64_t end_row) {
    for (const Rectangle& seen : above)
      blocks.push_back(
          {{first_row, end_row - first_row}, seen.queries, seen.keys, sight.causal, seen.start});
    first_row = end_row;
  };
  for (int64_t row = 0; row < num_rows; ++row) {
    const int32_t* const all = numbers.const_data_ptr<int32_t>() + row * numbers.size(1);
    std::vector<Rectangle> seen = source == rank
                                      ? own_documents(all + rank * n, n)
                                      : shared_document(sight, all + rank * n, all + source * n);
    if (!places.empty())
      for (Rectangle& one : seen)
        one.start = start_of(all[rank * n + one.queries.first], all, places);
    if (seen != above) add_blocks(row);
    above = std::move(seen);
  }
  add_blocks(num_rows);
  return blocks;
}

}  // namespace titan::context_parallel
