// The one place where prices are made: plans, simulated steps and what-ifs ask here. Judges ask the same estimators
// (PublishedTimes), made without what they judge.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/stack.hpp"
#include "sim/cost/fit/conformal.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/cost/stacks/stack_fit.hpp"
#include "sim/measurements/published_tables.hpp"

namespace wt {

struct PriceSources {
  std::vector<std::string> profiles;  ///< measured on this machine: files, or names in configs/profiles
  std::filesystem::path machine;      ///< a machine model made of some, instead
  std::string stack;                  ///< of configs/stacks; empty = kDefaultStack
  bool allow_assumed = false;         ///< price what nobody measured on shared cores by a roofline
  Precision compute = Precision::bf16;
  Precisions precisions = {};
  std::string family = {};  ///< step_family of the runs that are priced: how wide intervals are; empty = any
};

struct Prices {
  std::shared_ptr<const OpCost> cost;
  StackSpec stack;                                 ///< how the program that is priced uses the machine
  std::string basis;                               ///< "torchtitan, published runs", or the names of profiles before it
  std::map<std::string, std::string> fingerprint;  ///< of the machine that was measured; empty = none was
  std::vector<Profile> profiles;
  std::vector<StorageRates> storage;  ///< what profiles or machine say of the places that hold checkpoints
};

/// Of GPUs: measured points first, published ones next, as the stack uses the machine. Of ranks on shared cores: what
/// was measured there. Throws Error{usage}: neither profile nor machine of shared cores, a profile of another machine
/// than the cluster's first `ranks` ranks have, unknown names.
Prices make_prices(const PriceSources& sources, const ClusterSpec& cluster, std::int64_t ranks);

/// What steps are priced by: benchmarks, and the constants of stacks that steps have with these.
struct StepPrices {
  BenchmarkTimes benchmarks;
  std::shared_ptr<const StackFit> stacks;  ///< fits when first asked for a model: a second or two
};

/// What published prices are made of.
class PublishedTimes {
 public:
  /// Of configs/measurements, read and fitted once a process.
  static const PublishedTimes& get();
  explicit PublishedTimes(PublishedTables tables);
  PublishedTimes(const PublishedTimes&) = delete;
  PublishedTimes& operator=(const PublishedTimes&) = delete;
  /// The same benchmarks beside other runs.
  PublishedTimes(const PublishedTimes& other, std::vector<RunRow> runs);

  const PublishedTables& tables() const { return tables_; }
  const std::vector<StackSpec>& stacks() const { return stacks_; }
  const BenchmarkTimes& benchmarks() const { return all_.benchmarks; }
  const StackFit& stack_fit() const { return *all_.stacks; }
  /// As if an origin (StackFit::origin_of) had published nothing, no step and no benchmark. Made when first asked for:
  /// where it has benchmarks, these are fitted anew and every step is priced by them, for a second or two.
  const StepPrices& without(const std::string& origin) const;
  /// What a step of a family is multiplied by for the ends of its 80 % interval: by how much steps of other origins
  /// than `without` were off.
  std::pair<double, double> off_by(const std::string& family, const std::string& without = "") const {
    return errors_.bounds(family, without);
  }

 private:
  void fit(const BenchmarkTimes& benchmarks);
  BenchmarkTimes benchmarks_without(const std::string& origin) const;

  PublishedTables tables_;
  std::vector<StackSpec> stacks_;
  StepPrices all_;
  LeftOutErrors errors_;
  mutable std::map<std::string, StepPrices> without_;  ///< by origin
};

}  // namespace wt
