#include "sim/validate/routed_case.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

/// Letters and digits, in lower case: 'Mixtral_8x7B' and 'mixtral-8x7b' become 'mixtral8x7b'.
std::string folded(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// One name for methods whose names differ between the artifact's tables, scripts and paper.
std::string folded_method(const std::string& method) {
  const std::string name = folded(method);
  static const std::map<std::string, std::string> kSynonyms = {
      {"fsdpep", "fsdp"}, {"epfsdp", "fsdp"}, {"flexmoe", "flex"}, {"laermoe", "laer"}};
  return value_or(kSynonyms, name, name);
}

const std::string& base_of(const std::string& said, const std::string& name) { return said.empty() ? name : said; }

double apart(std::int64_t a, std::int64_t b) {
  return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
}

std::string layout_text(const RunRow& run) {
  return fmt::format("{} x {}{}{}, expert groups of {}, {} sequences of {} tokens in {} microbatches", run.gpus,
                     run.gpu, run.interconnect.fabric.empty() ? "" : ", ", run.interconnect.fabric, run.ep,
                     run.global_batch, run.seq, run.accumulation);
}

/// For a variant without a setup: the model with the nearest shape, and the setup with the nearest layout.
class Stand {
 public:
  Stand(const RoutedContext& context, const PlacedStep& row) : setups_(context.setups), row_(row) {
    const std::string base = folded(base_of(row.base, row.model));
    for (const auto& [other, setup] : setups_)
      if (folded(base_of(setup.base, other)) == base) shapes_.push_back({&setup.run.model, &setup});
    for (const ModelSpec& model : context.models)
      if (folded(model.name) == base) shapes_.push_back({&model, nullptr});
  }

  /// Sets setup and assumptions. False: no shape or no setup is known. Throws Error{usage} if no such model is
  /// possible.
  bool fill(RoutedCase& out) const {
    if (shapes_.empty() || setups_.empty()) return false;
    const std::string& name = row_.model;
    const bool said = row_.experts > 0;
    const Shape& shape = *std::ranges::min_element(shapes_, [&](const Shape& a, const Shape& b) {
      return said ? rank(a) < rank(b) : a.model->experts < b.model->experts;  // variants split experts
    });
    ModelSpec model = *shape.model;
    if (said) cut(model);
    if (model.experts == 0) throw_usage("model '{}' has no experts; give the columns experts and top_k", name);
    const RoutedSetup& layout = shape.setup ? *shape.setup : nearest_layout(model);
    out.setup = layout;
    out.setup.run.ep = std::gcd(layout.run.ep, model.experts);
    out.assumed.push_back(fmt::format("shape of {}{}", shape.model->name,
                                      same(model, *shape.model) ? ""
                                                                : fmt::format(" with {} experts of width {}, top {}",
                                                                              model.experts, model.ffn, model.top_k)));
    model.name = name;
    out.setup.run.model = model;
    out.assumed.push_back(fmt::format("layout of {}: {}", layout.run.model.name, layout_text(out.setup.run)));
    check_setup(out.setup, name);
    return true;
  }

 private:
  struct Shape {
    const ModelSpec* model;
    const RoutedSetup* setup;  ///< null: the shape is from configs/models
  };

  static bool same(const ModelSpec& a, const ModelSpec& b) {
    return a.experts == b.experts && a.top_k == b.top_k && a.ffn == b.ffn;
  }

  /// Sort key: dense models last, then distance in experts and choices, then setups before models without a layout.
  std::tuple<bool, double, bool> rank(const Shape& shape) const {
    const ModelSpec& m = *shape.model;
    if (m.experts == 0) return {true, 0, true};
    return {false, apart(m.experts, row_.experts) + apart(m.top_k, row_.top_k), shape.setup == nullptr};
  }

  /// If experts and choices grow by the same factor, every expert is split by it, as e16k4 is from e8k2 in the recorded
  /// models: a token still passes the same width. Otherwise experts keep their width.
  void cut(ModelSpec& model) const {
    if (model.experts > 0 && row_.experts * model.top_k == row_.top_k * model.experts)
      model.ffn = std::max<std::int64_t>(1, model.ffn * model.experts / row_.experts);
    model.experts = row_.experts;
    model.top_k = row_.top_k;
  }

  /// Setups from the folder of the measured file come first: they describe its cluster.
  const RoutedSetup& nearest_layout(const ModelSpec& model) const {
    const auto distance = [&](const RoutedSetup& s) {
      const ModelSpec& m = s.run.model;
      return std::make_tuple(
          !s.beside, apart(m.experts, model.experts) + apart(m.top_k, model.top_k) + apart(m.d_model, model.d_model));
    };
    return std::ranges::min_element(setups_, {}, [&](const auto& each) { return distance(each.second); })->second;
  }

  const std::map<std::string, RoutedSetup>& setups_;
  const PlacedStep& row_;
  std::vector<Shape> shapes_;
};

/// The first line that was refused in tables of the same folder.
std::string also(const RoutedContext& context) {
  if (context.refused.empty()) return "";
  return fmt::format("; {} lines beside were not taken, the first: {}", context.refused.size(),
                     context.refused.front());
}

void fail(RoutedCase& out, std::string unknown, std::string reason) {
  out.unknown = std::move(unknown);
  out.reason = std::move(reason);
}

void find_setup(RoutedCase& out, const PlacedStep& row, const RoutedContext& context) {
  const auto& setups = context.setups;
  out.model = row.model;
  auto own = setups.find(row.model);
  if (own == setups.end())
    own = std::ranges::find_if(setups, [&](const auto& s) { return folded(s.first) == folded(row.model); });
  if (own != setups.end()) {
    out.model = own->first;
    out.setup = own->second;
    return;
  }
  try {
    if (Stand(context, row).fill(out))
      out.basis = RoutedBasis::other_shape;
    else
      fail(out, "no shape",
           fmt::format("no shape and layout of model '{}'; give it a row as in routing_setups.csv, or its base_model",
                       row.model) +
               also(context));
  } catch (const Error& e) {
    if (e.code() != Code::usage) throw;
    fail(out, "no shape", e.what());
  }
}

/// A bound on rank load over the mean: a rank with m experts receives at most min(m, top_k) of a token's top_k rows.
double fullest_possible(const RunRow& run) {
  const double held = static_cast<double>(run.model.experts) / static_cast<double>(run.ep),
               top_k = static_cast<double>(run.model.top_k);
  return static_cast<double>(run.ep) * std::min(held, top_k) / top_k;
}

/// Takes the nearest recording of the row's method. Loads are not scaled, only limited to what is possible.
void find_loads(RoutedCase& out, const PlacedStep& row, const RoutedContext& context) {
  using Entry = std::pair<const std::pair<std::string, std::string>, RankLoads>;
  const RunRow& run = out.setup.run;
  const ModelSpec& model = run.model;
  const auto other = [&](const Entry& e) -> const RunRow* {
    const auto setup = context.setups.find(e.first.first);
    return setup == context.setups.end() ? nullptr : &setup->second.run;
  };
  const auto own = [&](const Entry& e) { return folded(e.first.first) == folded(out.model); };
  const auto distance = [&](const Entry& e) {
    const RunRow* r = own(e) ? &run : other(e);
    const double chosen = apart(model.top_k * r->model.experts, r->model.top_k * model.experts);
    return std::make_tuple(!own(e), e.first.second != row.method, chosen + apart(run.ep, r->ep),
                           apart(model.experts, r->model.experts));
  };
  const Entry* best = nullptr;
  std::set<std::string> methods;
  for (const Entry& e : context.loads) {
    methods.insert(e.first.second);
    if (folded_method(e.first.second) != folded_method(row.method) || (!own(e) && !other(e))) continue;
    if (!best || distance(e) < distance(*best)) best = &e;
  }
  if (!best)
    return fail(out, "no loads",
                fmt::format("no rank loads of method '{}' of any model, and its layout is not known; recorded are {}",
                            row.method, fmt::join(methods, ", ")) +
                    also(context));
  out.recording = best->first;
  out.loads = best->second;
  const auto at_best = [&](RoutedBasis basis, std::string words) {
    out.basis = std::max(out.basis, basis);
    out.assumed.push_back(std::move(words));
  };
  if (own(*best)) {
    if (out.basis == RoutedBasis::other_shape) return;  // a recording without a setup: its data set is unknown
    if (folded(row.dataset) != folded(out.setup.loads_dataset) || row.aux_loss != out.setup.loads_aux_loss)
      at_best(RoutedBasis::other_setting, fmt::format("loads as on {} with a balancing loss of {}",
                                                      out.setup.loads_dataset, out.setup.loads_aux_loss));
    return;
  }
  const RunRow& r = *other(*best);
  const std::string words = fmt::format("loads of {} on {}", best->first.second, best->first.first);
  if (r.model.experts == model.experts && r.model.top_k == model.top_k && r.ep == run.ep)
    return at_best(RoutedBasis::other_model, words);
  at_best(RoutedBasis::other_experts,
          fmt::format("{} with {} experts, top {}, expert groups of {}", words, r.model.experts, r.model.top_k, r.ep));
  for (auto& steps : out.loads)
    for (std::vector<double>& ranks : steps)
      for (double& load : ranks) load = std::min(load, fullest_possible(run));
}

}  // namespace

const char* regime_of(RoutedBasis basis) {
  static const char* const words[] = {"loads recorded", "loads assumed: recorded on another data set or loss",
                                      "loads assumed: recorded on another model",
                                      "loads assumed: recorded for other experts or ranks", "shape or layout assumed"};
  return words[static_cast<int>(basis)];
}

RoutedCase routed_case(const PlacedStep& row, const RoutedContext& context) {
  RoutedCase out;
  out.model = row.model;
  if (!row.unusable.empty()) {
    fail(out, "unusable rows", row.unusable);
    return out;
  }
  find_setup(out, row, context);
  if (!out.reason.empty()) return out;
  if (!data_sheet(out.setup.run.gpu))
    fail(out, "no data sheet", fmt::format("no data sheet of '{}'", out.setup.run.gpu));
  else
    find_loads(out, row, context);
  return out;
}

}  // namespace wt
