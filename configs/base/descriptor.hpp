// The number of an open file, socket or pipe, which is closed with it.
#pragma once
#include <unistd.h>

#include <utility>

namespace wt {

class Descriptor {
 public:
  /// -1: none.
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// The number, which somebody else closes.
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (is_open()) ::close(release());
  }

 private:
  int number_;
};

}  // namespace wt
