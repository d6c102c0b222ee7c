#include "segment.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail_with_errno.h"

namespace titan::cpu {
namespace {

constexpr uint64_t kMagic = 0x7469'7461'6e73'6731;  // identifies this layout
constexpr uint64_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct alignas(kLine) SegmentStart {
  uint64_t magic;
  int64_t rank;
};

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::byte* map_memory(int fd, uint64_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail_with_errno("mmap");
  return static_cast<std::byte*>(memory);
}

}  // namespace

SegmentLayout::SegmentLayout(int size_of_group) : size(size_of_group) {
  constexpr uint64_t kMegabyte = uint64_t{1} << 20;
  published_bytes = 2 * kMegabyte;
  const auto others = static_cast<uint64_t>(std::max(1, size - 1));
  direct_bytes = std::clamp(4 * kMegabyte / others / kPage * kPage, kMegabyte / 4, 2 * kMegabyte);
}

uint64_t SegmentLayout::segment_bytes() const {
  const auto others = static_cast<uint64_t>(size - 1);
  return kPage + whole_pages(RingPlace::bytes(size - 1, published_bytes)) +
         2 * others * whole_pages(RingPlace::bytes(1, direct_bytes));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int Descriptor::release() {
  return std::exchange(fd_, -1);
}

Segment::Segment(const SegmentLayout& layout, int rank, std::byte* memory)
    : layout_(layout), rank_(rank), memory_(memory) {}

Segment::Segment(Segment&& other) noexcept
    : layout_(other.layout_), rank_(other.rank_), memory_(std::exchange(other.memory_, nullptr)) {}

Segment::~Segment() {
  if (memory_) ::munmap(memory_, layout_.segment_bytes());
}

Segment Segment::create(const SegmentLayout& layout, int rank, Descriptor& descriptor) {
  Descriptor fd(::memfd_create("titan-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) fail_with_errno("memfd_create");
  const uint64_t bytes = layout.segment_bytes();
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fail_with_errno("ftruncate");
  // sealed: no process can truncate it, which would kill processes that access it
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) fail_with_errno("fcntl(F_ADD_SEALS)");
  Segment segment(layout, rank, map_memory(fd.get(), bytes));
  new (segment.memory_) SegmentStart{.magic = kMagic, .rank = rank};
  descriptor = std::move(fd);
  return segment;
}

Segment Segment::map(const SegmentLayout& layout, int rank, const Descriptor& descriptor) {
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) fail_with_errno("fstat");
  const uint64_t bytes = layout.segment_bytes();
  if (static_cast<uint64_t>(status.st_size) != bytes ||
      ::fcntl(descriptor.get(), F_GET_SEALS) != kSeals)
    throw std::runtime_error("the segment of rank " + std::to_string(rank) + " has " +
                             std::to_string(status.st_size) + " bytes instead of " +
                             std::to_string(bytes) + ", or no seals");
  Segment segment(layout, rank, map_memory(descriptor.get(), bytes));
  const auto* start = reinterpret_cast<const SegmentStart*>(segment.memory_);
  if (start->magic != kMagic || start->rank != rank)
    throw std::runtime_error("rank " + std::to_string(rank) +
                             " sent something else than its segment");
  return segment;
}

Futex& Segment::futex() const {
  return *reinterpret_cast<Futex*>(memory_ + sizeof(SegmentStart));
}

RingPlace Segment::published() const {
  return RingPlace::at(memory_ + kPage, layout_.size - 1, layout_.published_bytes);
}

RingPlace Segment::direct(int reader, Use use) const {
  const int index = (reader < rank_ ? reader : reader - 1) * 2 + (use == Use::messages ? 1 : 0);
  std::byte* first =
      memory_ + kPage + whole_pages(RingPlace::bytes(layout_.size - 1, layout_.published_bytes));
  return RingPlace::at(
      first + static_cast<uint64_t>(index) * whole_pages(RingPlace::bytes(1, layout_.direct_bytes)),
      1, layout_.direct_bytes);
}

}  // namespace titan::cpu
