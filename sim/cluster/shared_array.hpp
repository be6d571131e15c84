// An array in memory shared with children that are forked later: for results too large for a pipe.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>

namespace wt {

/// Zeroed bytes. Throws Error{runtime} if memory is short.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t size);
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  void* data() const { return data_; }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

template <class T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SharedArray(std::size_t size) : size_(size), bytes_(size * sizeof(T)) {}
  std::span<T> values() { return {static_cast<T*>(bytes_.data()), size_}; }

 private:
  std::size_t size_;
  SharedBytes bytes_;
};

}  // namespace wt
