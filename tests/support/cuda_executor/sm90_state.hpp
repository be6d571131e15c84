// Inside of sm90.hpp: what a block's Hopper instructions have left behind.
#pragma once
#include <array>
#include <deque>
#include <map>

#include "tests/support/cuda_executor/sm90_layouts.hpp"
#include "tests/support/cuda_executor/threads.hpp"

namespace wt::cuda_executor {

struct Barrier {
  std::string name;
  Phases phases;
  Clock coming, over;  ///< of all arrivals so far; at the end of the last phase
  const Thread* initialised_by = nullptr;
  bool fenced = false;
};

struct NamedBarrier {
  unsigned threads = 0, arrived = 0;
  uint64_t round = 0;
  Clock coming, over;
};

/// wgmma of one warp: the products of its 16 rows of the sums.
struct Product {
  MatrixDescriptor a, b;
  bool transposed_a, transposed_b;
  unsigned columns;
  std::array<float*, kLanes> d;
  Clock issued;
};
struct ProductGroup {
  std::deque<Product> products;
  bool committed = false, done = false;
  Clock end;
};

struct WarpState {
  unsigned number = 0;
  int registers = 0;  ///< a thread
  std::deque<ProductGroup> groups;
  size_t committed = 0;
  Clock issued;
  size_t said = 0;  ///< of its warpgroup's instructions
};

struct Hopper {
  uint32_t run = 0;
  uint32_t dynamic_start = 0;  ///< shared address, after static memory of a size that nobody knows
  int barriers_made = 0, free_registers = 0;
  std::map<const void*, Barrier> barriers;
  std::array<NamedBarrier, 16> named;
  std::array<WarpState, 32> warps;
  std::array<std::vector<std::string>, 8> warpgroups;  ///< what all warps of each issue

  /// The next instruction of a warp that is its warpgroup's, too: fails if another of the four issued another one.
  void same_in_warpgroup(WarpState& warp, std::string instruction);
};
/// Of the block that runs.
Hopper& hopper();

/// Dynamic shared memory at a shared address, of which an instruction may know the last 18 bits alone; fails outside.
unsigned char* at_shared(uint32_t address);

}  // namespace wt::cuda_executor
