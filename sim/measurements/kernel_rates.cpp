#include "sim/measurements/kernel_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/row_ops.hpp"

namespace wt {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

/// The sizes in a shape: named ones by the letters before "=" (case matters: "K" of a product, "k" choices), and bare
/// ones.
struct Shape {
  std::map<std::string, double> named;
  std::vector<double> bare;

  /// The size with the first of these names that the shape has; 0 if it has none.
  double operator()(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const auto found = named.find(name); found != named.end()) return found->second;
    return 0;
  }
};

Shape shape_of(const std::string& text) {
  static const std::regex pair(
      R"(([A-Za-z][A-Za-z_/]{0,15})\s{0,2}[=:]\s{0,2}(\d{1,9}(?:\.\d{1,3})?)([kK](?![A-Za-z]))?)"),
      compact(R"(\b([MNKmnk])(\d{1,9})(?![\d.]))"),
      sizes(R"(\b(\d{1,9})\s?[x*,]\s?(\d{1,9})(?:\s?[x*,]\s?(\d{1,9}))?(?![\d.]))"),
      rows(R"(\b(\d{1,9}) rows x [a-z]{1,8} (\d{1,9})\b)");
  Shape out;
  for (std::sregex_iterator it(text.begin(), text.end(), pair), end; it != end; ++it)
    out.named.emplace((*it)[1], std::stod((*it)[2]) * ((*it)[3].matched ? 1024 : 1));
  if (out.named.empty())
    for (std::sregex_iterator it(text.begin(), text.end(), compact), end; it != end; ++it)
      out.named.emplace((*it)[1], std::stod((*it)[2]));
  std::smatch found;
  if (out.named.empty() && (std::regex_search(text, found, rows) || std::regex_search(text, found, sizes)))
    for (std::size_t i = 1; i < found.size(); ++i)
      if (found[i].matched) out.bare.push_back(std::stod(found[i]));
  return out;
}

/// What one of a unit is in seconds, FLOP/s or B/s. A remark in brackets may follow if it does not change the meaning.
struct Unit {
  enum class Of { seconds, flops, bytes } of;
  double scale;
};
std::optional<Unit> unit_of(const std::string& text) {
  std::string unit = lower(text.substr(0, text.find(" (")));
  const std::string remark = unit.size() < text.size() ? lower(text.substr(unit.size())) : "";
  if (!remark.empty() && !has(remark, "byte count") && !has(remark, "close to")) return std::nullopt;
  static const std::map<std::string, Unit> units = {
      {"s", {Unit::Of::seconds, 1}},        {"ms", {Unit::Of::seconds, 1e-3}},   {"us", {Unit::Of::seconds, 1e-6}},
      {"tflop/s", {Unit::Of::flops, 1e12}}, {"tflops", {Unit::Of::flops, 1e12}}, {"tflops/s", {Unit::Of::flops, 1e12}},
      {"gflop/s", {Unit::Of::flops, 1e9}},  {"gflops", {Unit::Of::flops, 1e9}},  {"pflop/s", {Unit::Of::flops, 1e15}},
      {"pflops", {Unit::Of::flops, 1e15}},  {"gb/s", {Unit::Of::bytes, 1e9}},    {"tb/s", {Unit::Of::bytes, 1e12}}};
  const auto found = units.find(unit);
  return found == units.end() ? std::nullopt : std::optional<Unit>(found->second);
}

std::string dtype_of(const std::string& precision) {
  std::string type = lower(precision);
  if (type == "fp16/bf16" || type == "bf16/fp16" || type == "bfloat16") return "bf16";
  if (type == "float16" || type == "half") return "fp16";
  if (type == "e4m3" || type == "e5m2" || type == "fp8_e4m3" || type == "float8") return "fp8";
  return type;
}

bool backward(const std::string& kernel) { return has(kernel, "backward") || has(kernel, "bwd"); }
bool both_ways(const std::string& kernel) {
  return has(kernel, "fwd+bwd") || has(kernel, "fwd + bwd") || has(kernel, "forward+backward");
}

std::string in_brackets(const std::string& kernel) {
  const auto from = kernel.find('('), to = kernel.rfind(')');
  return from == std::string::npos || to == std::string::npos || to < from ? ""
                                                                           : kernel.substr(from + 1, to - from - 1);
}

std::string without_brackets(const std::string& kernel) {
  static const std::regex brackets(R"(\s?\([^)]{0,200}\))");
  return std::regex_replace(kernel, brackets, "");
}

/// The attention library in a kernel's name. Tables spell these in many ways.
std::string attention_library(const std::string& kernel) {
  static const std::array<std::pair<std::regex, const char*>, 7> libraries = {
      {{std::regex("cudnn"), "cuDNN"},
       {std::regex("tlx"), "Triton TLX"},
       {std::regex("triton"), "Triton"},
       {std::regex(R"(fa ?v?4|flash[-_ ]?(attention|attn)?[-_ ]?v?4)"), "FlashAttention-4"},
       {std::regex(R"(fa ?v?3|flash[-_ ]?(attention|attn)?[-_ ]?v?3)"), "FlashAttention-3"},
       {std::regex(R"(fa ?v?2|flash[-_ ]?(attention|attn)?[-_ ]?v?2)"), "FlashAttention-2"},
       {std::regex("standard|eager|unfused"), "unfused"}}};
  for (const auto& [words, name] : libraries)
    if (std::regex_search(kernel, words)) return name;
  return kernel;
}

/// The library of grouped products in a kernel's name; the name, if it has none.
std::string grouped_library(const std::string& kernel) {
  static const std::array<std::pair<std::regex, const char*>, 8> libraries = {
      {{std::regex("_scaled_grouped_mm"), "torch_scaled"},
       {std::regex("_grouped_mm"), "torch"},
       {std::regex("deep_?gemm", std::regex::icase), "deepgemm"},
       {std::regex("tileops", std::regex::icase), "tileops"},
       {std::regex("quack", std::regex::icase), "quack"},
       {std::regex("triton", std::regex::icase), "triton"},
       {std::regex("cublas.* loop|transformer ?engine|GroupedLinear", std::regex::icase), "te"},
       {std::regex("cutlass", std::regex::icase), "cutlass"}}};
  for (const auto& [words, name] : libraries)
    if (std::regex_search(kernel, words)) return name;
  return without_brackets(kernel);
}

bool sizes_are_sane(const KernelRow& row) {
  const auto whole = [](double x) {
    return x >= 1 && x <= kMostThings && x == static_cast<double>(static_cast<long>(x));
  };
  return whole(row.m) && whole(row.n) && (row.k == 0 || whole(row.k)) && whole(row.groups);
}

void read_attention(const Shape& shape, const std::string& kernel, const std::string& text, bool timed,
                    KernelRow& row) {
  row.op = backward(kernel) ? "attention_backward" : "attention_forward";
  row.implementation = attention_library(kernel);
  static const std::regex causal(R"(causal\s*[=:]?\s*(true|yes|1)\b|\bcausal\b(?!\s*[=:]))", std::regex::icase),
      said(R"(causal)", std::regex::icase), none(R"((non|not|no)[- ]causal)", std::regex::icase);
  const std::string words = text + " " + kernel;
  row.causal = std::regex_search(words, causal) && !std::regex_search(words, none);
  row.groups = shape({"B", "b", "batch", "batch_size"}) * shape({"H", "h", "heads", "nheads", "Hq"});
  row.m = shape({"S", "s", "Sq", "seq", "seqlen", "N_CTX", "q"});
  row.k = shape({"Skv", "kv", "S", "s", "seq", "seqlen", "N_CTX"});
  row.n = shape({"D", "d", "headdim", "hdim", "head_dim"});
  if (!std::regex_search(words, said)) {
    // FLOPs are counted with the mask, so the rate is nearly the same with and without it. The time differs by a factor
    // of two.
    row.assumed = true;
    if (timed) row.unusable = "shape does not say whether attention is causal, which halves its time";
  }
  if (row.groups == 0 || row.m == 0 || row.n == 0 || row.k < row.m)
    row.unusable = "shape does not say batch, heads, sequence and head dimension (B=4 H=16 S=8192 D=128 causal=1)";
}

void read_experts(const Shape& shape, const std::string& kernel, const std::string& said, KernelRow& row) {
  row.op = backward(kernel) ? "moe_backward" : "moe_forward";
  const std::string library = in_brackets(said);
  row.implementation = library.empty() ? without_brackets(said) : library;
  for (const char* word : {" forward", " backward"})
    if (const auto at = row.implementation.find(word); at != std::string::npos) row.implementation.erase(at);
  const double tokens = shape({"T", "tokens"}), experts = shape({"E", "experts"}),
               choices = shape({"K", "k", "topk", "top_k"});
  row.groups = experts;
  row.m = experts > 0 && tokens * choices > 0 ? std::max(1.0, std::round(tokens * choices / experts)) : 0;
  row.n = shape({"n", "I", "ffn"});
  row.k = shape({"d", "H", "hidden"});
  if (row.m == 0 || row.n == 0 || row.k == 0)
    row.unusable = "shape does not say tokens, widths, experts and choices (T=32768 d=4096 n=1024 E=64 K=4)";
}

void read_groups(const Shape& shape, const std::string& said, KernelRow& row) {
  row.op = "grouped_gemm";
  row.implementation = grouped_library(said);
  row.groups = shape({"groups", "E", "batch", "experts", "num_groups"});
  const double each = shape({"M/group", "M", "m", "avgM"}), all = shape({"tokens", "T"});
  row.assumed = each == 0;  // assumes equal groups
  row.m = each > 0 ? each : all > 0 && row.groups > 0 ? std::max(1.0, std::round(all / row.groups)) : 0;
  row.n = shape({"N", "n"});
  row.k = shape({"K", "k", "avgK", "K/group"});
  if (row.groups == 0 || row.m == 0 || row.n == 0 || row.k == 0)
    row.unusable = "shape does not say groups, rows of each, n and k (groups=8 M/group=4096 N=4096 K=7168)";
}

void read_product(const Shape& shape, KernelRow& row) {
  row.op = "gemm";
  row.m = shape({"M", "m"}), row.n = shape({"N", "n"}), row.k = shape({"K", "k"});
  if (shape.named.empty() && shape.bare.size() == 3)
    row.m = shape.bare[0], row.n = shape.bare[1], row.k = shape.bare[2];
  if (row.m == 0 || row.n == 0 || row.k == 0) row.unusable = "shape does not say m, n and k of at most 1e7";
}

void read_row_op(const Shape& shape, const std::string& said, const RowOp& op, KernelRow& row) {
  row.op = op.name;
  row.implementation = in_brackets(said);
  // "(kernel)" and "(vLLM kernel)" name no library but the engine's own kernels, as in the table of times.
  if (lower(row.implementation).ends_with("kernel")) row.implementation.clear();
  static const std::regex width(R"((?:H=|ffn |hidden )(\d{2,7}))");
  std::smatch found;
  row.m = shape.bare.size() == 2 ? shape.bare[0] : shape({"M", "m", "rows", "tokens", "T"});
  row.n = shape.bare.size() == 2 ? shape.bare[1] : shape({"N", "n", "H", "hidden", "ffn"});
  if (row.n == 0 && std::regex_search(said, found, width)) row.n = std::stod(found[1]);
  if (row.m == 0 || row.n == 0) row.unusable = "shape does not say rows and width (4096x8192)";
}

}  // namespace

double published_flops(const KernelShape& row) {
  if (row.op.starts_with("attention"))
    return 4 * row.groups * row.m * row.k * row.n * (row.causal ? 0.5 : 1) * (row.op == "attention_backward" ? 2.5 : 1);
  if (row.op.starts_with("moe"))  // gate, up and down projections
    return 6 * row.groups * row.m * row.n * row.k * (row.op == "moe_backward" ? 2 : 1);
  return 2 * row.groups * row.m * row.n * row.k;
}

double least_bytes(const KernelShape& row, double element_bytes) {
  if (row.op.ends_with("gemm"))  // products in fp8 write 16 bits
    return row.groups *
           (element_bytes * (row.m * row.k + row.n * row.k) + std::max(2.0, element_bytes) * row.m * row.n);
  return row_op(row.op).value_or(RowOp{}).streams * row.m * row.n * element_bytes;
}

void read_rate(const KernelRate& rate, KernelRow& row) {
  row.source = rate.source;
  row.dtype = dtype_of(rate.precision);
  row.op = rate.kernel;
  const std::string kernel = lower(rate.kernel);
  const auto unit = unit_of(rate.unit);
  if (!unit) {
    row.unusable = "'" + rate.unit + "' is no time and no rate in FLOP/s or bytes/s";
    return;
  }
  if (both_ways(kernel)) {
    row.unusable = "forward and backward together";
    return;
  }
  const Shape shape = shape_of(rate.shape);
  const bool product = has(kernel, "gemm") || has(kernel, "matmul") || has(kernel, "_mm") || has(kernel, "cutlass") ||
                       has(kernel, "cublas");
  const bool other = has(kernel, "fused") || has(kernel, "sparse") || has(kernel, "w4a16") || has(kernel, "entropy");
  const bool groups = shape({"groups", "E", "batch", "experts", "num_groups"}) > 0;
  const bool attention = has(kernel, "attention") || has(kernel, "attn") || has(kernel, "sdpa") || has(kernel, "flash");
  if (attention && !product) {  // "GEMM attn_out" is a product of attention
    read_attention(shape, kernel, rate.shape, unit->of == Unit::Of::seconds, row);
  } else if (has(kernel, "moe layer") || has(kernel, "fused_moe")) {
    read_experts(shape, kernel, rate.kernel, row);
  } else if (product && !other && (groups || has(kernel, "group"))) {
    read_groups(shape, rate.kernel, row);
  } else if (product && !other) {
    read_product(shape, row);
  } else if (const auto op = row_op(rate.kernel)) {
    read_row_op(shape, rate.kernel, *op, row);
  } else {
    row.unusable = "no model of '" + without_brackets(rate.kernel) + "'";
  }
  if (row.unusable.empty() && !sizes_are_sane(row))
    row.unusable = row.op == "gemm" ? "shape does not say m, n and k of at most 1e7"
                                    : "a size of the shape is not within 1 to 1e7";
  if (!row.unusable.empty()) return;
  if (!(rate.value > 0)) throw_usage("column 'value': found 0, needs a rate above 0");
  const auto element = element_bytes(row.dtype);
  if (unit->of == Unit::Of::seconds) {
    row.seconds = rate.value * unit->scale;
  } else if (unit->of == Unit::Of::flops) {
    if (row_op(row.op))
      row.unusable = "FLOP/s of a kernel bound by memory";
    else
      row.seconds = published_flops(row) / (rate.value * unit->scale);
  } else if (!row.op.ends_with("gemm") && !row_op(row.op)) {
    row.unusable = "bytes/s of a kernel bound by FLOPs";
  } else if (element) {  // without a known element size, kernel_sample gives the reason
    row.seconds = least_bytes(row, *element) / (rate.value * unit->scale);
  }
}

}  // namespace wt
