// Which memory kernels may touch, and in which order they touched it. A cell for every byte keeps the last write and
// two of the last reads, each with its thread's clock (FastTrack, Flanagan and Freund 2009, with two readers kept of
// many).
//
// Device memory is what cudaMalloc() gave, and what operator new gave to the test (as managed memory is): both with
// exact bounds. Shared memory is thread_local memory of the executable: nothing else of it is used by kernels.
#pragma once
#include <cstddef>
#include <cstdint>

namespace wt::cuda_executor {

/// Most that a block can have (Hopper), with the static part.
constexpr size_t kMostSharedBytes = 227 << 10;
/// Dynamic shared memory that a kernel may be launched with: 48 KiB, unless cudaFuncSetAttribute raised it. The
/// kernel's static memory is not counted.
size_t& shared_limit(const void* kernel);

enum class Access { read, write, atomic };

/// The running thread touches these bytes: fails if they are outside, not written yet (read, atomic), or were touched
/// by another thread with nothing between. Two writes of the same value are let pass. `code`: the instruction's
/// address.
void touch(const void* at, size_t bytes, Access access, const void* code = __builtin_return_address(0));

/// Device memory, of bytes that nobody has written.
void* allocate(size_t bytes);
void release_memory(void* memory);
/// The host has written these bytes.
void written_by_host(const void* at, size_t bytes);

/// Of an address in shared memory, from 0: what __cvta_generic_to_shared() gives.
uint32_t shared_offset(const void* at);

/// Where dynamic shared memory begins.
unsigned char* dynamic_shared();

}  // namespace wt::cuda_executor
