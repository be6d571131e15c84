#include "sim/cluster/shared_array.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "configs/base/error.hpp"

namespace wt {

SharedBytes::SharedBytes(std::size_t size) : size_(std::max<std::size_t>(size, 1)) {  // a mapping cannot be empty
  data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED)
    throw_runtime("simulation: no {} bytes to share with its process: {}; free memory", size_, std::strerror(errno));
}

SharedBytes::~SharedBytes() { ::munmap(data_, size_); }

}  // namespace wt
