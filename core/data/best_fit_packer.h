// Best-fit packing: only documents that are longer than a window are split. Ding et al., 2024,
// "Fewer Truncations Improve Language Modeling". Used by make_packer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/packer.h"

namespace titan::core {

/// Reads documents for `kGroupWindows` windows at a time, and splits those that are longer than a
/// window into pieces. Puts each piece, longest first, into the fullest window that has room for
/// it. The rest of a window is padding. The state is the start of the group and a window in it; a
/// resumed run reads and packs the group again.
class BestFitPacker final : public Packer {
 public:
  static constexpr int64_t kGroupWindows = 64;

  BestFitPacker(std::unique_ptr<RowReader> reader, const PackingOptions& options);

  bool next(Window& window) override;
  Value state() const override;
  void restore(const Value& state) override;
  std::string place() const override { return reader_->place(); }

 private:
  struct Piece {
    size_t document = 0;  // of the group
    size_t begin = 0, size = 0;
  };
  using Bin = std::vector<Piece>;

  void fill();
  bool has_target(const Bin& bin) const;
  std::vector<Piece> cut() const;
  Window to_window(const Bin& bin) const;

  std::unique_ptr<RowReader> reader_;
  PackingOptions options_;
  Value group_start_;  // the reader's state
  int64_t given_ = 0;  // windows of the group returned so far
  bool must_refill_ = false;
  std::vector<TokenizedDocument> documents_;
  std::vector<Bin> bins_;
};

}  // namespace titan::core
