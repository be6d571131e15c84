// The models of Hopper's instructions (tests/fixtures/cuda_executor) against what PTX ISA 9.0 and CUDA 13.0's header
// say of them.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <set>

#include "tests/fixtures/cuda_executor/tensor_map.hpp"

using namespace wt::cuda_executor;
using Catch::Matchers::Contains;

namespace {
const Swizzle kSwizzles[] = {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128};

uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, uint64_t mode) {
  return start >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 | mode << 62;
}
uint32_t unit_of(uint64_t bits, bool mn_major, uint32_t mn, uint32_t k) {
  return MatrixDescriptor(bits).unit(mn_major, mn, k);
}
}  // namespace

TEST_CASE("swizzling moves the units of 16 bytes as in the manual's tables") {
  const auto units = [](Swizzle mode, uint32_t row_of_128) {
    std::vector<uint32_t> at;
    for (uint32_t unit = 0; unit < 8; ++unit) at.push_back(swizzled(mode, row_of_128 * 128 + unit * 16) / 16 % 8);
    return at;
  };
  using Units = std::vector<uint32_t>;
  CHECK(units(Swizzle::bytes_128, 0) == Units{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(units(Swizzle::bytes_128, 1) == Units{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(units(Swizzle::bytes_128, 3) == Units{3, 2, 1, 0, 7, 6, 5, 4});
  CHECK(units(Swizzle::bytes_128, 7) == Units{7, 6, 5, 4, 3, 2, 1, 0});
  CHECK(units(Swizzle::bytes_64, 1) == Units{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(units(Swizzle::bytes_64, 3) == Units{3, 2, 1, 0, 7, 6, 5, 4});
  CHECK(units(Swizzle::bytes_64, 4) == units(Swizzle::bytes_64, 0));
  CHECK(units(Swizzle::bytes_32, 1) == Units{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(units(Swizzle::bytes_32, 2) == units(Swizzle::bytes_32, 0));
  CHECK(units(Swizzle::none, 5) == Units{0, 1, 2, 3, 4, 5, 6, 7});
  for (const Swizzle mode : kSwizzles)
    for (uint32_t at = 0; at < 4096; at += 2) {
      REQUIRE(swizzled(mode, swizzled(mode, at)) == at);
      REQUIRE(swizzled(mode, at + pattern_of(mode)) == swizzled(mode, at) + pattern_of(mode));
    }
}

TEST_CASE("a matrix descriptor's fields, and what it may not hold") {
  const MatrixDescriptor d(descriptor(0x12340 & ~0x3ff, 8192, 1024, 1));
  CHECK(d.start == (0x12340 & ~0x3ff));
  CHECK((d.leading == 8192 && d.stride == 1024 && d.swizzle == Swizzle::bytes_128));
  CHECK(MatrixDescriptor(descriptor(0, 0, 0, 0)).swizzle == Swizzle::none);
  CHECK(MatrixDescriptor(descriptor(0, 0, 0, 2)).swizzle == Swizzle::bytes_64);
  CHECK(MatrixDescriptor(descriptor(0, 0, 0, 3)).swizzle == Swizzle::bytes_32);
  CHECK_THROWS_WITH(MatrixDescriptor(uint64_t{1} << 49), Contains("base offset"));
  CHECK_THROWS_WITH(MatrixDescriptor(uint64_t{1} << 14), Contains("bits that are to be 0"));
  CHECK_THROWS_WITH(MatrixDescriptor(descriptor(128, 0, 1024, 1)), Contains("first row of a pattern"));
  CHECK_THROWS_WITH(unit_of(descriptor(112, 16, 1024, 1), false, 0, 0), Contains("end of its swizzled row"));
  CHECK_THROWS_WITH(unit_of(descriptor(0, 16, 1040, 1), false, 0, 0), Contains("stride"));
  CHECK_THROWS_WITH(unit_of(descriptor(16, 8192, 1024, 1), true, 0, 0), Contains("within a row"));
  CHECK_THROWS_WITH(unit_of(descriptor(0, 8208, 1024, 1), true, 0, 0), Contains("leading"));
}

TEST_CASE("the units of an operand are where the copy engine puts them, for every swizzle and both majors") {
  const int mode = GENERATE(0, 1, 2, 3);
  constexpr uint64_t kCode[] = {0, 3, 2, 1};
  const Swizzle swizzle = kSwizzles[mode];
  const uint32_t span = span_of(swizzle), pattern = pattern_of(swizzle);
  // K-major: rows of M or N, `span` bytes along K. Without swizzle every 16 bytes of K are a column of units.
  const bool none = swizzle == Swizzle::none;
  TensorMap box;
  box.rank = 2, box.element_bytes = 2, box.box = {static_cast<uint16_t>(span / 2), 64}, box.steps = {1, 1};
  box.swizzle = swizzle;
  const uint32_t target = 4096;
  for (uint32_t mn = 0; mn < 64; ++mn)
    for (uint32_t k = 0; k < 16; k += 8) {
      const uint64_t bits = descriptor(target, none ? 64 * 16 : 16, none ? 128 : pattern, kCode[mode]);
      const uint32_t expected = none ? box.address(target + k / 8 * 64 * 16, mn, 0) : box.address(target, mn, k / 8);
      CHECK(unit_of(bits, false, mn, k) == expected);
    }
  // MN-major: rows of K, span / 2 elements of M or N; one box after another along M or N, of 16 rows each.
  box.box[1] = 16;
  const uint32_t box_bytes = 16 * span, per_box = span / 2;
  for (uint32_t k = 0; k < 16; ++k)
    for (uint32_t mn = 0; mn < 128; mn += 8) {
      const uint64_t bits =
          none ? descriptor(target, 128, box_bytes, 0) : descriptor(target, box_bytes, pattern, kCode[mode]);
      CHECK(unit_of(bits, true, mn, k) == box.address(target + mn / per_box * box_bytes, k, mn % per_box / 8));
    }
}

TEST_CASE("a warp's lanes hold each sum once, where the manual's figure has it") {
  const unsigned columns = GENERATE(8, 128, 256);
  std::set<std::pair<unsigned, unsigned>> seen;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < columns / 2; ++i) {
      const Fragment at = fragment(lane, i);
      CHECK((at.row < 16 && at.column < columns));
      seen.insert({at.row, at.column});
    }
  CHECK(seen.size() == 16 * columns);
  // d0 d1 of lane 5: row 1, columns 2 and 3; d2 d3 eight rows below; d4 eight columns to the right.
  CHECK((fragment(5, 0).row == 1 && fragment(5, 0).column == 2));
  CHECK((fragment(5, 3).row == 9 && fragment(5, 3).column == 3));
  CHECK((fragment(31, 4).row == 7 && fragment(31, 4).column == 14));
}

TEST_CASE("a barrier's phase ends when arrivals and bytes have come, in any order") {
  Phases barrier(2);
  CHECK(barrier.over(1));  // the phase before the first
  CHECK(!barrier.over(0));
  barrier.complete(100);  // bytes may come before they are expected
  barrier.expect(128), barrier.arrive();
  CHECK((barrier.pending() == 1 && barrier.bytes() == 28));
  barrier.arrive();
  CHECK(!barrier.over(0));
  CHECK_THROWS_WITH(barrier.arrive(), Contains("an arrival too many"));
  barrier.complete(28);
  CHECK((barrier.over(0) && !barrier.over(1) && barrier.pending() == 2));
  barrier.arrive(), barrier.arrive();
  CHECK((barrier.phase() == 2 && !barrier.over(0)));
  CHECK_THROWS_WITH(Phases(0), Contains("arrivals"));
  CHECK_THROWS_WITH(Phases(1 << 20), Contains("arrivals"));
  CHECK_THROWS_WITH(barrier.expect(1 << 20), Contains("bytes to come"));
}

TEST_CASE("a box of a tensor: its rows, zeros outside, steps of elements") {
  std::vector<uint16_t> values(3 * 5 * 16);
  std::iota(values.begin(), values.end(), uint16_t{1});
  TensorMap map;
  map.data = reinterpret_cast<const unsigned char*>(values.data());
  map.rank = 3, map.element_bytes = 2, map.extents = {16, 5, 3}, map.strides = {32, 160};
  map.box = {8, static_cast<uint16_t>(GENERATE(3, 4)), 2}, map.steps = {1, static_cast<uint8_t>(GENERATE(1, 2)), 1};
  REQUIRE(map.wrong() == nullptr);
  const uint32_t per_matrix = (map.box[1] + map.steps[1] - 1u) / map.steps[1];
  CHECK(map.rows() == 2 * per_matrix);
  CHECK(map.bytes() == 2 * per_matrix * 16);
  for (const auto& corner : {std::array{0, 0, 0, 0, 0}, std::array{-3, -1, 2, 0, 0}, std::array{12, 4, -1, 0, 0},
                             std::array{16, 0, 0, 0, 0}, std::array{-8, 0, 0, 0, 0}})
    map.each_row(corner, [&](uint32_t row, const unsigned char* from, uint32_t first, uint32_t count) {
      const int z = corner[2] + int(row / per_matrix), y = corner[1] + int(row % per_matrix) * map.steps[1];
      for (uint32_t e = 0; e < 8; ++e) {
        const int x = corner[0] + int(e);
        const bool within = x >= 0 && x < 16 && y >= 0 && y < 5 && z >= 0 && z < 3;
        REQUIRE(within == (e >= first && e < first + count));
        if (within) REQUIRE(reinterpret_cast<const uint16_t*>(from)[e - first] == 1 + (z * 5 + y) * 16 + x);
      }
    });
}

TEST_CASE("a tensor map that the driver refuses") {
  alignas(16) static uint16_t values[64];
  const auto wrong = [](auto change) {
    TensorMap map;
    map.data = reinterpret_cast<const unsigned char*>(values);
    map.rank = 2, map.element_bytes = 2, map.extents = {16, 4}, map.strides = {32}, map.box = {16, 4},
    map.steps = {1, 1};
    map.swizzle = Swizzle::bytes_32;
    change(map);
    return std::string(map.wrong() ? map.wrong() : "");
  };
  CHECK(wrong([](TensorMap&) {}).empty());
  CHECK(wrong([](TensorMap& m) { m.rank = 6; }) == "rank");
  CHECK(wrong([](TensorMap& m) { m.data += 8; }) == "address not on 16 bytes");
  CHECK(wrong([](TensorMap& m) { m.extents[1] = 0; }) == "extent");
  CHECK(wrong([](TensorMap& m) { m.extents[0] = (uint64_t{1} << 32) + 1; }) == "extent");
  CHECK(wrong([](TensorMap& m) { m.box[1] = 257; }) == "box");
  CHECK(wrong([](TensorMap& m) { m.steps[1] = 9; }) == "element stride");
  CHECK(wrong([](TensorMap& m) { m.strides[0] = 40; }) == "stride");
  CHECK(wrong([](TensorMap& m) { m.box[0] = 12; }) == "inner extent of the box");
  CHECK(wrong([](TensorMap& m) { m.box[0] = 32; }) == "inner extent of the box beyond the swizzle");
}
