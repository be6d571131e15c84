#include "sim/measurements/row_ops.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace wt {
namespace {

struct Known {
  std::string_view word, name;
  double streams;
};

// Longer names come before names that they contain. A gated activation and an addition read two inputs. An addition
// fused with a norm also writes the sum. The backward of a norm or activation also reads the output's gradient.
constexpr std::array<Known, 19> kKnown = {{{"addrmsnorm", "add_rmsnorm", 4},
                                           {"addlayernorm", "add_layernorm", 4},
                                           {"rmsnorm", "rmsnorm", 2},
                                           {"layernorm", "layernorm", 2},
                                           {"groupnorm", "groupnorm", 2},
                                           {"siluandmul", "swiglu", 3},
                                           {"silumul", "swiglu", 3},
                                           {"swiglu", "swiglu", 3},
                                           {"geluandmul", "geglu", 3},
                                           {"geglu", "geglu", 3},
                                           {"softmax", "softmax", 2},
                                           {"residualadd", "residual_add", 3},
                                           {"addresidual", "residual_add", 3},
                                           {"silu", "silu", 2},
                                           {"gelu", "gelu", 2},
                                           {"relu", "relu", 2},
                                           {"quantise", "cast", 2},
                                           {"quantize", "cast", 2},
                                           {"rope", "rope", 2}}};
// These occur inside other words, so they must be the whole name.
constexpr std::array<Known, 6> kWhole = {{{"add", "residual_add", 3},
                                          {"mul", "mul", 3},
                                          {"residual", "residual_add", 3},
                                          {"cast", "cast", 2},
                                          {"copy", "copy", 2},
                                          {"transpose", "transpose", 2}}};
constexpr std::array<std::string_view, 18> kOthers = {
    "gemm",   "matmul", "linear",   "conv",    "attention", "attn",      "sdpa",     "flash",   "moe",
    "expert", "router", "dispatch", "combine", "allreduce", "allgather", "alltoall", "scatter", "entropy"};

std::string letters(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalpha(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

bool not_row_by_row(const std::string& name) {
  const std::string bare = letters(name);
  return std::ranges::any_of(kOthers, [&](std::string_view word) { return bare.find(word) != std::string::npos; });
}

std::optional<RowOp> row_op(const std::string& name) {
  const std::string bare = letters(name);
  if (not_row_by_row(name)) return std::nullopt;
  const bool backward = bare.find("backward") != std::string::npos || bare.ends_with("bwd");
  const auto as = [&](const Known& known) {
    return backward ? RowOp{std::string(known.name) + "_backward", known.streams == 3 ? 5 : known.streams + 1}
                    : RowOp{std::string(known.name), known.streams};
  };
  for (const Known& known : kKnown)
    if (bare.find(known.word) != std::string::npos) return as(known);
  for (const Known& known : kWhole)
    if (bare == known.word) return as(known);
  return std::nullopt;
}

}  // namespace wt
