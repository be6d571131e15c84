#include "bench/formats/kineto.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// A product (rows x k) (k x n), from the inputs of aten::mm and aten::addmm.
struct Product {
  std::int64_t rows = 0, n = 0, k = 0;
  std::string dtype;
};

std::optional<std::int64_t> id_at(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return std::nullopt;
  return object[key].get<std::int64_t>();
}

std::optional<std::vector<std::int64_t>> matrix(const json& dims) {
  if (!dims.is_array() || dims.size() != 2 || !dims[0].is_number_integer() || !dims[1].is_number_integer() ||
      dims[0] < 1 || dims[1] < 1)
    return std::nullopt;
  return std::vector<std::int64_t>{dims[0].get<std::int64_t>(), dims[1].get<std::int64_t>()};
}

std::optional<Product> product(const json& event) {
  static const std::map<std::string, std::string> types{
      {"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}, {"float", "fp32"}};
  const std::string name = text_at(event, "name");
  if ((name != "aten::mm" && name != "aten::addmm") || !event.contains("args") || !event["args"].is_object())
    return std::nullopt;
  const json& args = event["args"];
  const std::size_t first = name == "aten::mm" ? 0 : 1;  // the first input of addmm is the bias
  const json dims = args.value("Input Dims", json::array()), type = args.value("Input type", json::array());
  if (!dims.is_array() || !type.is_array() || dims.size() < first + 2 || type.size() < first + 2 ||
      !type[first].is_string())
    return std::nullopt;
  const auto a = matrix(dims[first]), b = matrix(dims[first + 1]);
  const auto dtype = types.find(type[first].get<std::string>());
  if (!a || !b || (*a)[1] != (*b)[0] || dtype == types.end()) return std::nullopt;
  return Product{(*a)[0], (*b)[1], (*a)[1], dtype->second};
}

enum class Category { kernel, transfer, other };

Category category(const json& event) {
  const std::string word = lower(text_at(event, "cat"));
  if (word == "kernel") return Category::kernel;
  static const std::set<std::string> transfers{"gpu_memcpy", "gpu_memset", "memcpy", "memset"};
  return transfers.contains(word) ? Category::transfer : Category::other;
}

class KinetoReader {
 public:
  KinetoReader(const json& document, const std::string& origin) : document_(document), origin_(origin) {}

  KinetoTrace read() {
    const JsonReader events = JsonReader(document_, origin_).at("traceEvents");
    for (const JsonReader& event : events.elements())
      if (const auto made = product(event.value()))
        if (const auto id = id_at(event.value()["args"], "External id")) products_[*id] = *made;
    for (const JsonReader& event : events.elements()) {
      const Category kind = category(event.value());
      if (kind != Category::other && text_at(event.value(), "ph") == "X") add(event, kind);
    }
    if (out_.kernels.empty())
      events.fail("no event of category kernel, gpu_memcpy or gpu_memset",
                  "a trace of GPU work (ProfilerActivity.CUDA)");
    out_.span_s = last_us_ * 1e-6 - first_us_ * 1e-6;
    write_profile();
    return std::move(out_);
  }

 private:
  void add(const JsonReader& event, Category category) {
    const std::string name = event.at("name").string();
    const double us = event.at("dur").non_negative(), start = event.at("ts").finite();
    const json args = event.value().value("args", json::object());
    if (const auto device = id_at(args, "device")) devices_.insert(*device);
    if (devices_.size() > 1)
      event.fail("work of a second device", "one device, that of the rank which exported the trace");
    TracedKernel& kernel = out_.kernels[name];
    kernel.kind = category == Category::transfer ? KernelClass::transfer : kernel_class(name);
    kernel.seconds.push_back(us * 1e-6);
    kernel.total_s += us * 1e-6;
    out_.class_s[static_cast<std::size_t>(kernel.kind)] += us * 1e-6;
    out_.kernel_s += us * 1e-6;
    first_us_ = std::min(first_us_, start), last_us_ = std::max(last_us_, start + us);
    const auto id = id_at(args, "External id");
    if (kernel.kind == KernelClass::gemm && id && products_.contains(*id)) executed_[*id].push_back(us * 1e-6);
  }

  void write_profile() {
    Profile& profile = out_.profile;
    profile.fingerprint = {
        {"device", "GPU"}, {"host", "asynchronous"}, {"source", "PyTorch profiler trace " + origin_}};
    const json properties = document_.value("deviceProperties", json::array());
    for (const json& device : properties.is_array() ? properties : json::array()) {
      if (!devices_.empty() && id_at(device, "id") != *devices_.begin()) continue;
      if (!text_at(device, "name").empty()) profile.fingerprint["device"] = text_at(device, "name");
      if (const auto count = id_at(device, "numSms")) profile.fingerprint["multiprocessors"] = std::to_string(*count);
    }
    const auto measured = [&](const std::string& kernel, const std::vector<double>& seconds) {
      Measurement m;
      m.kernel = kernel, m.pass = "", m.clock = "device", m.samples = seconds;
      m.evidence = {Evidence::measured, "PyTorch profiler trace " + origin_};
      return m;
    };
    for (const auto& [name, kernel] : out_.kernels) {
      profile.measurements.push_back(measured("trace/" + to_string(kernel.kind) + "/" + name, kernel.seconds));
      profile.measurements.back().counters = {{"total_s", kernel.total_s}};
    }
    std::map<std::string, Measurement> gemms;
    for (const auto& [id, seconds] : executed_) {
      const Product& p = products_.at(id);
      Measurement m = measured("gemm", {0});
      m.pass = "forward", m.dtype = p.dtype, m.shape = {{"rows", p.rows}, {"n", p.n}, {"k", p.k}};
      double sum = 0;  // a split-K product and its reduction count as one
      for (double s : seconds) sum += s;
      const auto [it, fresh] = gemms.try_emplace(m.name(), m);
      if (fresh) it->second.samples.clear();
      it->second.samples.push_back(sum);
    }
    for (auto& [name, m] : gemms) profile.measurements.push_back(std::move(m));
  }

  const json& document_;
  const std::string origin_;
  KinetoTrace out_;
  std::map<std::int64_t, Product> products_;  ///< key: external id
  std::map<std::int64_t, std::vector<double>> executed_;
  std::set<std::int64_t> devices_;
  double first_us_ = std::numeric_limits<double>::max(), last_us_ = std::numeric_limits<double>::lowest();
};

}  // namespace

std::string to_string(KernelClass kind) {
  static const char* names[] = {"collective", "attention",    "gemm",     "optimizer",
                                "sorting",    "memory_bound", "transfer", "unknown"};
  return names[static_cast<int>(kind)];
}

KernelClass kernel_class(const std::string& name) {
  using enum KernelClass;
  // The order matters: a fused attention is also a CUTLASS kernel, and everything in PyTorch is at::native.
  static const std::vector<std::pair<KernelClass, std::vector<const char*>>> kWords{
      {collective, {"nccl", "rccl", "nvshmem", "deep_ep", "all_reduce_kernel", "symm_mem"}},
      {attention, {"flash", "fmha", "attention", "mha_fwd", "mha_bwd"}},
      {optimizer, {"adam", "multi_tensor", "multitensor", "lamb"}},
      {sorting,
       {"topk", "top_k", "radixsort", "radix_sort", "bitonic", "devicescan", "histogram", "devicemergesort",
        "gathertopk", "moe_align"}},
      {gemm,
       {"gemm", "gemv", "nvjet", "xmma", "splitkreduce", "cublas", "cutlass", "wgmma", "triton_tem", "hmma", "_s16816",
        "_s1688"}},
      {memory_bound,
       {"elementwise", "norm",       "reduce",     "softmax", "cross_entropy", "nll_loss", "embedding", "indexselect",
        "index_",      "indexing",   "copy",       "fill",    "memset",        "cat",      "transpose", "permute",
        "dropout",     "gelu",       "silu",       "swiglu",  "rope",          "rotary",   "scatter",   "gather",
        "triton_poi",  "triton_red", "triton_per", "cast",    "distribution"}}};
  const std::string text = lower(name);
  for (const auto& [kind, words] : kWords)
    for (const char* word : words)
      if (text.find(word) != std::string::npos) return kind;
  return unknown;
}

KinetoTrace from_kineto(const json& document, const std::string& origin) {
  return KinetoReader(document, origin).read();
}

bool is_gpu_work(const json& event) { return category(event) != Category::other; }

bool is_chrome_trace(const json& document) { return document.is_object() && document.contains("traceEvents"); }

}  // namespace wt
