#include "trainer/checkpoint/packed_state.hpp"

#include <xxhash.h>

#include <cstring>

#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr std::int64_t kChecksumFloats = sizeof(std::uint64_t) / sizeof(float);

}  // namespace

PackedState::PackedState(std::int64_t elements, at::Device device)
    : elements_(elements), buffer_(std::make_shared<HostBuffer>()) {
  buffer_->reserve(static_cast<std::size_t>(elements + kChecksumFloats), device);
}

at::Tensor PackedState::tensor() const {
  return at::from_blob(
      data(), {elements_ + kChecksumFloats}, [held = buffer_](void*) {}, at::kFloat);
}

std::uint64_t PackedState::checksum() const { return XXH3_64bits(data(), values().size_bytes()); }

void PackedState::seal() {
  const std::uint64_t sum = checksum();
  std::memcpy(data() + elements_, &sum, sizeof(sum));
}

void PackedState::unseal() {
  auto* sealed = reinterpret_cast<unsigned char*>(data() + elements_);
  for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i) sealed[i] = static_cast<unsigned char>(~sealed[i]);
}

bool PackedState::intact() const {
  std::uint64_t sealed = 0;
  std::memcpy(&sealed, data() + elements_, sizeof(sealed));
  return sealed == checksum();
}

}  // namespace wt
