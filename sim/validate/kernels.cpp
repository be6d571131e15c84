#include "sim/validate/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "sim/cost/fit/fit.hpp"
#include "sim/cost/kernels/composed_kernels.hpp"
#include "sim/cost/kernels/kernel_set.hpp"
#include "sim/cost/kernels/libraries.hpp"
#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/products.hpp"

namespace wt {
namespace {

constexpr const char* kStreaming = "bound by memory";
constexpr std::size_t kFewestOfWidths = 5;  // rows of other widths that a memory-bound kernel is fitted on

std::string product_regime(const KernelSample& s) {
  const double m = s.product.m;
  return fmt::format("gemm, {}, {}", s.gpu.name,
                     m < 64     ? "m < 64"
                     : m < 256  ? "m 64-255"
                     : m < 1024 ? "m 256-1023"
                                : "m >= 1024");
}

/// Predicts kernels of any kind; keeps the fits.
class KernelPredictor {
 public:
  explicit KernelPredictor(std::vector<KernelSample> training) {
    std::vector<KernelSample> of_libraries;
    for (KernelSample& s : training)
      if (s.of_library())
        of_libraries.push_back(std::move(s));
      else
        (s.is_product() ? products_ : others_)[s.gpu.name].push_back(std::move(s));
    for (const auto& [name, samples] : products_)
      if (ProductModel::enough(samples)) models_.emplace(name, ProductModel(samples, samples.front().gpu));
    std::vector<LibraryRow> rows;
    std::map<std::string, std::vector<double>> shares;
    for (const KernelSample& s : of_libraries)
      if (const auto row = library_row(s)) {
        rows.push_back(*row);
        shares[s.is_composed() ? s.row->op : kStreaming].push_back(s.share_of_peak());
      }
    for (const auto& [kind, of_kind] : shares) typical_library_share_[kind] = quantile(of_kind, 0.5);
    libraries_.emplace(std::move(rows));
  }

  Judged judge(const KernelSample& s) const {
    if (!s.reason.empty()) return other(s);
    return s.is_product() ? product(s, false) : s.of_library() ? library(s, false) : other(s);
  }

  /// As if nothing had been measured on this GPU or of this library: shows how far what is known of others carries.
  std::optional<Judged> transferred(const KernelSample& s) const {
    if (s.of_library()) return library(s, true);
    if (!s.is_product() || !donor(s.gpu, true)) return std::nullopt;
    return product(s, true);
  }

 private:
  static Judged blank(const KernelSample& s) {
    Judged j;
    j.line = s.row->line;
    j.group = s.group;
    j.name = !s.row->unusable.empty() ? s.row->gpu + " " + s.row->op
                                      : fmt::format("{} {} m{} n{} k{} {}", s.row->gpu, s.row->op, s.row->m, s.row->n,
                                                    s.row->k, s.row->dtype);
    j.measured = s.row->seconds;
    return j;
  }

  /// The GPU itself, else the nearest generation with the most similar number of processors.
  const std::pair<const std::string, ProductModel>* donor(const DataSheet& gpu, bool another) const {
    const std::pair<const std::string, ProductModel>* best = nullptr;
    auto least = std::make_pair(0, std::int64_t{0});
    for (const auto& entry : models_) {
      if (entry.first == gpu.name) {
        if (!another) return &entry;
        continue;
      }
      const DataSheet& sheet = products_.at(entry.first).front().gpu;
      const auto distance =
          std::make_pair(std::abs(sheet.generation - gpu.generation), std::abs(sheet.processors - gpu.processors));
      if (!best || distance < least) best = &entry, least = distance;
    }
    return best;
  }

  Judged product(const KernelSample& s, bool another) const {
    Judged j = blank(s);
    const auto* model = donor(s.gpu, another);
    if (!model) {
      j.regime = "gemm, " + s.gpu.name;
      j.forecast.reason = j.baseline.reason =
          fmt::format("fewer than {} other shape families of any GPU to fit on", ProductModel::kFewestGroups);
      return j;
    }
    const DataSheet& from = products_.at(model->first).front().gpu;
    const bool same = model->first == s.gpu.name;
    const bool near = from.generation == s.gpu.generation && from.processors == s.gpu.processors;
    j.regime = same   ? product_regime(s)
               : near ? "gemm, constants of a GPU with the same processors"
                      : "gemm, constants of another generation";
    j.forecast.value = model->second.predict(s.product, s.gpu, s.group, near);
    j.forecast.evidence = only(same ? Evidence::published : Evidence::derived);
    j.baseline.value =
        s.product.flops() / (model->second.typical_share(s.group) * s.gpu.flops * s.product.relative_rate);
    j.baseline.evidence = j.forecast.evidence;
    return j;
  }

  /// What the shape alone says of a library's kernel. Empty where no GPU's products are known.
  std::optional<double> shape_s(const KernelSample& s) const {
    const KernelRow& row = *s.row;
    if (row.op.starts_with("attention_")) return attention_time_s(row, s.product.relative_rate, s.gpu);
    if (!s.is_composed()) return memory_bound_time_s(row_kernel(s), s.gpu, typical_memory_bound());
    const auto* model = donor(s.gpu, false);
    if (!model) return std::nullopt;
    const WaveConstants& constants = model->second.constants();
    if (row.op == "grouped_gemm") return wave_time_s(s.product, s.gpu, constants, row.groups);
    return experts_time_s(row, s.product.relative_rate, s.product.element_bytes, s.gpu, constants);
  }

  std::optional<LibraryRow> library_row(const KernelSample& s) const {
    const auto seconds = shape_s(s);
    if (!seconds) return std::nullopt;
    return LibraryRow{.kind = s.row->op,
                      .library = s.row->implementation,
                      .gpu = s.gpu.name,
                      .generation = s.gpu.generation,
                      .processor_flops = s.gpu.flops / static_cast<double>(s.gpu.processors),
                      .group = s.group,
                      .source = s.row->source.substr(0, s.row->source.find(' ')),
                      .log_factor = std::log(s.row->seconds / *seconds)};
  }

  Judged library(const KernelSample& s, bool as_unknown) const {
    Judged j = blank(s);
    j.regime = s.row->op;
    const auto row = library_row(s);
    const auto factor = row ? libraries_->factor(*row, as_unknown) : std::nullopt;
    if (!factor) {
      j.forecast.reason = j.baseline.reason = fmt::format(
          "{} of '{}' not measured at other shapes or sources, and other libraries too few or too different", s.row->op,
          s.row->implementation);
      return j;
    }
    const std::string kind = s.is_composed() ? s.row->op : kStreaming;
    j.regime = kind + (factor->known == Libraries::Known::on_this_gpu          ? ", library measured"
                       : factor->known == Libraries::Known::on_this_generation ? ", library measured on another GPU"
                                                                               : ", library never measured");
    j.forecast.value = *shape_s(s) * std::exp(factor->log_factor);
    j.forecast.evidence = only(s.row->assumed                                   ? Evidence::assumed
                               : factor->known == Libraries::Known::on_this_gpu ? Evidence::published
                                                                                : Evidence::derived);
    if (s.row->assumed)
      j.assumed.emplace_back(s.row->op.starts_with("attention_") ? "attention without a mask"
                                                                 : "groups of equally many rows");
    j.baseline.value = s.share_of_peak() * s.row->seconds / typical_library_share_.at(kind);
    j.baseline.evidence = j.forecast.evidence;
    return j;
  }

  Judged other(const KernelSample& s) const {
    Judged j = blank(s);
    j.regime = s.row->unusable.empty() ? s.row->op : "other kernels";
    if (!s.reason.empty()) {
      j.forecast.reason = j.baseline.reason = s.reason;
      return j;
    }
    j.regime = fmt::format("{}, {}", s.row->op, s.gpu.name);
    const auto known = widths_.find(s.group);
    const WidthFit& fit =
        known != widths_.end() ? known->second : widths_.emplace(s.group, fit_widths(s)).first->second;
    if (!fit.constants) {
      j.forecast.reason = j.baseline.reason =
          fmt::format("fewer than {} measurements of {} at other widths", kFewestOfWidths, s.row->op);
      return j;
    }
    j.forecast.value = memory_bound_time_s(row_kernel(s), s.gpu, *fit.constants);
    j.baseline.value = s.bytes / (fit.typical_share * s.gpu.memory_Bps);
    j.forecast.evidence = j.baseline.evidence = only(fit.same ? Evidence::published : Evidence::derived);
    return j;
  }

  static RowKernel row_kernel(const KernelSample& s) { return {s.row->m, s.row->n, s.bytes}; }

  struct WidthFit {
    std::optional<MemoryBoundConstants> constants;  ///< none: too few measurements
    double typical_share = 0;
    bool same = true;  ///< measured on this very GPU
  };
  WidthFit fit_widths(const KernelSample& s) const {
    std::vector<const KernelSample*> seen = of_other_widths(s.gpu.name, s);
    WidthFit fit;
    fit.same = !seen.empty();
    for (auto gpu = others_.begin(); seen.empty() && gpu != others_.end(); ++gpu) seen = of_other_widths(gpu->first, s);
    if (seen.empty()) return fit;
    std::vector<TimedRowKernel> kernels;
    std::vector<double> shares;
    for (const KernelSample* each : seen) {
      kernels.push_back({row_kernel(*each), each->row->seconds});
      shares.push_back(each->share_of_peak());
    }
    fit.constants = fit_memory_bound(kernels, seen.front()->gpu);
    fit.typical_share = quantile(shares, 0.5);
    return fit;
  }

  std::vector<const KernelSample*> of_other_widths(const std::string& gpu, const KernelSample& s) const {
    std::vector<const KernelSample*> out;
    if (const auto found = others_.find(gpu); found != others_.end())
      for (const KernelSample& each : found->second)
        if (each.row->op == s.row->op && each.group != s.group) out.push_back(&each);
    if (out.size() < kFewestOfWidths) out.clear();
    return out;
  }

  std::map<std::string, std::vector<KernelSample>> products_, others_;  ///< by GPU
  std::map<std::string, ProductModel> models_;
  std::optional<Libraries> libraries_;
  std::map<std::string, double> typical_library_share_;  ///< by kind
  mutable std::map<std::string, WidthFit> widths_;       ///< by group, once asked for
};

}  // namespace

std::vector<Judged> judge_kernels(const std::vector<KernelRow>& rows, const std::vector<KernelRow>& reference) {
  std::vector<KernelSample> samples;
  samples.reserve(rows.size());
  for (const KernelRow& row : rows) samples.push_back(kernel_sample(row));
  const std::vector<KernelSample> training = training_set(samples, reference);
  const KernelPredictor predictor(training);

  std::vector<Judged> judged;
  for (const KernelSample& s : samples) judged.push_back(predictor.judge(s));
  // Intervals know the errors on the reference, too, and those of constants from another GPU.
  const KernelRow* first = rows.data();
  const KernelRow* last = first + rows.size();
  for (const KernelSample& s : training) {
    if (s.row < first || s.row >= last) judged.push_back(predictor.judge(s));
    if (auto other = predictor.transferred(s)) judged.push_back(std::move(*other));
  }
  add_intervals(judged, &Judged::forecast);
  add_intervals(judged, &Judged::baseline);
  judged.resize(samples.size());
  return judged;
}

}  // namespace wt
