#include "kernels/checks.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace wt::kernels {
namespace {

thread_local char last_error[512] = "";

struct Isa {
  const char* name;
  const Backend* (*table)();
  bool (*runs_here)();
};

// Fastest first.
const Isa kIsas[] = {
#ifdef WT_KERNELS_X86
    {"avx512", cpu_avx512,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     }},
    {"avx2", cpu_avx2, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
#endif
    {"baseline", cpu_baseline, [] { return true; }},
};

const Isa* best_isa() {
  for (const Isa& isa : kIsas) {
    if (isa.runs_here()) return &isa;
  }
  return nullptr;  // unreachable: baseline runs everywhere
}

const Isa*& chosen_isa() {
  static const Isa* chosen = best_isa();
  return chosen;
}

long long wide(int64_t value) { return value; }

}  // namespace

WtStatus fail(WtStatus status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

WtStatus out_of_memory(const char* function, int64_t count, const char* things, const char* argument) {
  return fail(WT_OUT_OF_MEMORY, "%s: no memory for %lld %s; allowed what this machine has free; lower %s", function,
              wide(count), things, argument);
}

Checks::Checks(const char* function, WtStream stream, WtDtype dtype) : function_(function), on_cpu_(stream.device < 0) {
  if (dtype != WT_FP32 && dtype != WT_BF16) {
    status_ = fail(WT_INVALID_ARGUMENT, "%s: dtype is %d; allowed WT_FP32 (0) and WT_BF16 (1); convert first", function,
                   static_cast<int>(dtype));
  } else if (stream.device < -1) {
    status_ = fail(WT_INVALID_ARGUMENT, "%s: device is %d; allowed -1 (CPU) or a CUDA device number; set stream.device",
                   function, stream.device);
  } else if (on_cpu_) {
    backend_ = chosen_isa()->table() + dtype;
  } else {
#ifdef WT_KERNELS_CUDA
    const Backend* table = nullptr;
    status_ = cuda_backend(function, stream.device, &table);
    if (status_ == WT_OK) backend_ = table + dtype;
#else
    status_ =
        fail(WT_NO_CUDA, "%s: device is %d in a build without CUDA; allowed -1 (CPU); configure with -DWT_CUDA=ON",
             function, stream.device);
#endif
  }
}

Checks& Checks::size(const char* name, int64_t value, int64_t least) {
  if (status_ == WT_OK && value < least)
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s is %lld; allowed %lld or more; check the caller's shapes", function_,
                   name, wide(value), wide(least));
  return *this;
}

Checks& Checks::even(const char* name, int64_t value) {
  if (status_ == WT_OK && (value < 2 || value % 2 != 0))
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s is %lld; allowed even numbers from 2; check the caller's shapes",
                   function_, name, wide(value));
  return *this;
}

Checks& Checks::at_most(const char* name, int64_t value, const char* bound_name, int64_t bound) {
  if (status_ == WT_OK && value > bound)
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s is %lld; allowed at most %s = %lld; check the caller's shapes",
                   function_, name, wide(value), bound_name, wide(bound));
  return *this;
}

Checks& Checks::divides(const char* name, int64_t value, const char* of_name, int64_t of) {
  if (status_ == WT_OK && (value < 1 || of % value != 0))
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s is %lld; allowed divisors of %s = %lld; check the caller's shapes",
                   function_, name, wide(value), of_name, wide(of));
  return *this;
}

Checks& Checks::fraction(const char* name, double value) {
  if (status_ == WT_OK && !(value >= 0 && value < 1))
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s is %g; allowed from 0 to below 1; set it so", function_, name, value);
  return *this;
}

Checks& Checks::array(const char* name, const void* pointer, int64_t rows, int64_t columns) {
  if (status_ == WT_OK && !pointer && rows * columns != 0)
    status_ =
        fail(WT_INVALID_ARGUMENT, "%s: %s is null with %lld elements; allowed null only when empty; pass the array",
             function_, name, wide(rows * columns));
  return *this;
}

Checks& Checks::index(const char* name, const int64_t* values, int64_t n, int64_t bound, int64_t ignored) {
  array(name, values, n);
  if (status_ != WT_OK || !on_cpu_) return *this;
  for (int64_t i = 0; i < n; ++i) {
    const bool inside = values[i] >= 0 && values[i] < bound;
    if (inside || (ignored < 0 && values[i] == ignored)) continue;
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s[%lld] is %lld; allowed 0 to %lld; check what made this array",
                   function_, name, wide(i), wide(values[i]), wide(bound - 1));
    break;
  }
  return *this;
}

Checks& Checks::ends(const char* name, const int32_t* values, int64_t groups, int64_t rows) {
  array(name, values, groups);
  if (status_ != WT_OK || !on_cpu_) return *this;
  for (int64_t g = 0, before = 0; g < groups; before = values[g++]) {
    const bool last = g + 1 == groups;
    if (values[g] >= before && (last ? values[g] == rows : values[g] <= rows)) continue;
    status_ = fail(WT_INVALID_ARGUMENT, "%s: %s[%lld] is %d; allowed %lld to %lld; check what summed the groups' rows",
                   function_, name, wide(g), static_cast<int>(values[g]), wide(last ? rows : before), wide(rows));
    break;
  }
  return *this;
}

}  // namespace wt::kernels

const char* wt_kernel_error(void) { return wt::kernels::last_error; }

const char* wt_kernel_isa(void) { return wt::kernels::chosen_isa()->name; }

WtStatus wt_kernel_set_isa(const char* name) {
  for (const auto& isa : wt::kernels::kIsas) {
    if (std::strcmp(isa.name, name) == 0 && isa.runs_here()) {
      wt::kernels::chosen_isa() = &isa;
      return WT_OK;
    }
  }
  return wt::kernels::fail(WT_INVALID_ARGUMENT,
                           "wt_kernel_set_isa: '%s'; allowed avx512, avx2 and baseline where machine and build have "
                           "them; pass one of those, wt_kernel_isa() names the best",
                           name);
}
