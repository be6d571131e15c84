// Argument checks of the C API. The first failed check sets the message; later ones are skipped.
#pragma once
#include "kernels/backend.hpp"

namespace wt::kernels {

class Checks {
 public:
  Checks(const char* function, WtStream stream, WtDtype dtype);

  Checks& size(const char* name, int64_t value, int64_t least);
  Checks& even(const char* name, int64_t value);
  Checks& at_most(const char* name, int64_t value, const char* bound_name, int64_t bound);
  Checks& divides(const char* name, int64_t value, const char* of_name, int64_t of);  ///< value >= 1, a divisor of `of`
  Checks& fraction(const char* name, double value);                                   ///< in [0, 1)
  /// Not null unless rows * columns is zero.
  Checks& array(const char* name, const void* pointer, int64_t rows, int64_t columns = 1);
  /// array(), and on the CPU every value in [0, bound) or equal to `ignored`.
  Checks& index(const char* name, const int64_t* values, int64_t n, int64_t bound, int64_t ignored = 0);
  /// array(), and on the CPU values that start at 0 or more, do not fall, and end at `rows`.
  Checks& ends(const char* name, const int32_t* values, int64_t groups, int64_t rows);

  /// True if a check failed or `work` is zero: return status().
  bool done(int64_t work) const { return status_ != WT_OK || work == 0; }
  WtStatus status() const { return status_; }
  const Backend& backend() const { return *backend_; }

 private:
  const char* function_;
  bool on_cpu_;
  const Backend* backend_ = nullptr;
  WtStatus status_ = WT_OK;
};

}  // namespace wt::kernels
