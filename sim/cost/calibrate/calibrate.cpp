#include "sim/cost/calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/statistics.hpp"
#include "sim/cost/calibrate/calibration.hpp"

namespace wt {
namespace detail {

ClassResidual residual_row(std::string name, std::string how, const std::vector<double>& measured,
                           const std::vector<double>& predicted, const std::vector<double>& held_out_ratios) {
  ClassResidual row;
  row.name = std::move(name);
  row.how = std::move(how);
  row.points = static_cast<std::int64_t>(measured.size());
  std::vector<double> errors, signed_errors, left_out;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    signed_errors.push_back(predicted[i] / measured[i] - 1);
    errors.push_back(std::abs(signed_errors.back()));
  }
  for (double ratio : held_out_ratios) left_out.push_back(std::abs(1 / ratio - 1));
  row.median_error = quantile(errors, 0.5);
  row.p90_error = quantile(errors, 0.9);
  row.bias = quantile(signed_errors, 0.5);
  if (!left_out.empty()) {
    row.held_out_median = quantile(left_out, 0.5);
    row.held_out_p90 = quantile(left_out, 0.9);
  }
  return row;
}

std::int64_t shape_value(const Measurement& m, const std::string& key) {
  const auto found = m.shape.find(key);
  if (found != m.shape.end()) return found->second;
  std::string keys;
  for (const auto& [name, value] : m.shape) keys += (keys.empty() ? "" : ", ") + name;
  throw_usage(
      "profile, measurement '{}': found shape keys {}, allowed are those with '{}'; measure it again with a suite of "
      "this version",
      m.name(), keys.empty() ? "none" : keys, key);
}

std::pair<double, double> ratio_interval(const std::vector<double>& ratios) {
  if (ratios.size() < 4) return {1 - kSparseHalfWidth, 1 + kSparseHalfWidth};
  return {std::min(1.0, quantile(ratios, 0.1)), std::max(1.0, quantile(ratios, 0.9))};
}

namespace {

/// All measurements of all profiles. Of the same measurement in several profiles, stronger evidence replaces weaker,
/// and samples of equal evidence are pooled.
std::vector<Sample> pooled(const std::vector<Profile>& profiles) {
  std::vector<Sample> out;
  std::map<std::string, std::size_t> place;
  for (const Profile& profile : profiles)
    for (const Measurement& m : profile.measurements) {
      const std::string store = is_storage(m) ? store_of(profile, m) : "";
      const auto [found, is_new] = place.emplace(store.empty() ? m.name() : m.name() + " " + store, out.size());
      if (is_new) {
        out.push_back({&profile, m});
        continue;
      }
      Sample& known = out[found->second];
      if (m.evidence.kind < known.measurement.evidence.kind)
        known = {&profile, m};
      else if (m.evidence.kind == known.measurement.evidence.kind) {
        known.joins.push_back(known.measurement.samples.size());
        known.measurement.pool(m);
      }
    }
  for (Sample& sample : out)
    if (Measurement& m = sample.measurement; !sample.joins.empty())
      m.evidence.source = fmt::format("{} samples in {} profiles, the first: {}", m.samples.size(),
                                      sample.joins.size() + 1, m.evidence.source);
  return out;
}

/// Whether the profile has storage measurements only. It may come from any host that reaches the storage.
bool storage_alone(const Profile& profile) {
  return !profile.measurements.empty() && std::ranges::all_of(profile.measurements, [](const Measurement& m) {
    return is_storage(m) || is_beside_storage(m);
  });
}

bool synchronous_host(const std::vector<Profile>& profiles) {
  int synchronous = 0, asynchronous = 0;
  for (const Profile& profile : profiles) {
    if (storage_alone(profile)) continue;
    const std::string said = value_or(profile.fingerprint, "host");
    bool on_device = said == "asynchronous", by_cpu = said == "synchronous";
    if (!on_device && !by_cpu)  // the key may hold the host's name instead
      for (const Measurement& m : profile.measurements) {
        on_device = on_device || m.clock == "device";
        by_cpu = by_cpu || m.clock == "thread_cpu";
      }
    (on_device ? asynchronous : synchronous) += on_device || by_cpu ? 1 : 0;
  }
  if (synchronous > 0 && asynchronous > 0)
    throw_usage(
        "calibrate: found {} profile(s) of synchronous hosts and {} of asynchronous ones, allowed is one kind; "
        "calibrate CPUs and GPUs into two machine models",
        synchronous, asynchronous);
  return asynchronous == 0;
}

/// Ratio of a step's computation time on several ranks at once to that of one rank alone.
void calibrate_crowding(const std::vector<Sample>& samples, Calibration& out) {
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    const std::int64_t ranks = shape_value(m, "ranks");
    const auto together = m.counters.find("issuing_thread_cpu_s"), alone = m.counters.find("alone_cpu_s");
    if (ranks < 2 || together == m.counters.end() || alone == m.counters.end() || !(alone->second > 0))
      throw_usage(
          "profile, measurement '{}': found {} ranks and {} counters, allowed at least 2 ranks and the counters "
          "issuing_thread_cpu_s and alone_cpu_s (above 0); run 'windtunnel bench collectives' again",
          m.name(), ranks, m.counters.size());
    const double ratio = std::max(1.0, together->second / alone->second);
    out.data.crowding[ranks] = ratio;
    out.notes.push_back(
        fmt::format("computation takes {:.1f} % longer where {} ranks share the cores", 100 * (ratio - 1), ranks));
  }
}

/// Share of their rate that products lose during a collective ("gemm_beside_all_gather"): median and middle 80 %. None
/// without such measurements, or if the ranks share cores with the transport.
std::optional<CommunicationSlowdown> measured_slowdown(const std::vector<Sample>& samples) {
  std::vector<double> lost;
  for (const Sample& sample : samples) {
    const auto& counters = sample.measurement.counters;
    const auto alone = counters.find("gemm_alone_s"), beside = counters.find("gemm_beside_s");
    if (alone == counters.end() || beside == counters.end() || !(beside->second > 0) ||
        sample.measurement.clock != "device")
      continue;
    lost.push_back(std::clamp(1 - alone->second / beside->second, 0.0, 0.99));
  }
  if (lost.empty()) return std::nullopt;
  return CommunicationSlowdown{quantile(lost, 0.5), quantile(lost, 0.1), quantile(lost, 0.9), Evidence::measured,
                               fmt::format("products timed alone and beside {} collectives in flight", lost.size())};
}

/// Products that a suite timed during a collective, for measured_slowdown().
bool is_beside(const std::string& kernel) { return kernel.starts_with("gemm_beside_"); }

/// Known measurements that calibration does not use: reports compare kernels with the copies, and each item's fit has
/// its own launch time.
bool is_of_machine(const std::string& kernel) {
  return kernel == "host_to_device" || kernel == "device_to_host" || kernel == "device_to_device" || kernel == "launch";
}

/// One of the two products of a backward pass, timed alone (bench/suites/staircase.hpp).
bool is_backward_product(const std::string& kernel) { return kernel == "gemm_rows" || kernel == "gemm_weight"; }

/// Adds up the gradients of rows and of weight of one shape to their backward pass, unless that was measured itself.
void add_backward_passes(const std::vector<Sample>& apart, std::vector<Sample>& items,
                         std::vector<std::string>& notes) {
  std::set<std::string> known;
  for (const Sample& item : items) known.insert(item.measurement.name());
  std::map<std::string, Sample> halves;  // by the name of the whole pass
  for (const Sample& sample : apart) {
    Sample whole = sample;
    Measurement& m = whole.measurement;
    m.kernel = "gemm";
    const auto [found, is_first] = halves.emplace(m.name(), whole);
    if (is_first) continue;
    const Measurement other = std::move(found->second.measurement);
    halves.erase(found);
    if (known.count(m.name())) continue;
    m.samples.resize(std::min(m.samples.size(), other.samples.size()));
    for (std::size_t i = 0; i < m.samples.size(); ++i) m.samples[i] += other.samples[i];
    for (const char* work : {"flops", "bytes"})
      if (m.counters.count(work) && other.counters.count(work)) m.counters[work] += other.counters.at(work);
    m.throttled.insert(m.throttled.end(), other.throttled.begin(), other.throttled.end());
    m.evidence = {std::max({Evidence::derived, m.evidence.kind, other.evidence.kind}),
                  fmt::format("its two products, timed apart: {}; {}", other.evidence.source, m.evidence.source),
                  std::max(m.evidence.root_kind(), other.evidence.root_kind())};
    items.push_back(std::move(whole));
  }
  if (!halves.empty())
    notes.push_back(fmt::format("left out: {} gradient(s) of products, of rows or weight alone", halves.size()));
}

}  // namespace
}  // namespace detail

CalibrationResult calibrate(const std::vector<Profile>& profiles, const CalibrationOptions& options) {
  using namespace detail;
  Calibration work;
  work.data.allow_assumed = options.allow_assumed;
  work.data.synchronous_host = synchronous_host(profiles);
  work.data.row_tile = work.data.synchronous_host ? 1 : 128;
  std::size_t throttled = 0;
  for (const Profile& profile : profiles) {
    for (const Measurement& m : profile.measurements) throttled += m.throttled.empty() ? 0 : 1;
    if (storage_alone(profile)) continue;
    for (const auto& [key, value] : profile.fingerprint) {
      const auto [found, is_new] = work.data.fingerprint.emplace(key, value);
      if (!is_new && found->second != value && (key == "device" || key == "cpu_model"))
        work.notes.push_back(
            fmt::format("profiles of different machines: {} '{}' and '{}'", key, found->second, value));
    }
  }
  std::string& seen = work.data.fingerprint[kCalibratedOn];
  for (const Profile& profile : profiles) seen += (seen.empty() ? "" : " ") + digest(profile);
  if (throttled > 0)
    work.notes.push_back(
        fmt::format("{} measurement(s) were taken on a throttled device, which this model takes for its usual speed; "
                    "measure them again",
                    throttled));
  const auto processors = work.data.fingerprint.find("multiprocessors");
  if (!work.data.synchronous_host && processors != work.data.fingerprint.end())
    work.data.multiprocessors = std::atoll(processors->second.c_str());

  std::vector<Sample> items, ops, collectives, besides, crowded, backward_products, storage;
  std::map<std::string, int> left_out;
  for (Sample& sample : pooled(profiles)) {
    const std::string& kernel = sample.measurement.kernel;
    if (is_beside(kernel)) {
      besides.push_back(std::move(sample));
      continue;
    }
    if (kernel == "step_computation") {
      crowded.push_back(std::move(sample));
      continue;
    }
    if (is_of_machine(kernel) || is_beside_storage(sample.measurement)) continue;
    bool known = true;
    try {
      kernel_from_string(is_backward_product(kernel) ? "gemm" : kernel);
    } catch (const Error&) {
      known = false;
    }
    const bool op = kernel.rfind("op:", 0) == 0, collective = collective_kind(kernel).has_value();
    const bool stored = is_storage(sample.measurement);
    if (!known && !op && !collective && !stored) {
      ++left_out[kernel];
      continue;
    }
    if (sample.measurement.unit != "s")
      throw_usage(
          "profile, measurement '{}': found unit '{}', allowed 's'; measure it again with a suite of this version",
          sample.measurement.name(), sample.measurement.unit);
    (op                            ? ops
     : stored                      ? storage
     : collective                  ? collectives
     : is_backward_product(kernel) ? backward_products
                                   : items)
        .push_back(std::move(sample));
  }
  for (const auto& [kernel, count] : left_out)
    work.notes.push_back(fmt::format("left out: {} measurement(s) of '{}', which no work item is", count, kernel));
  add_backward_passes(backward_products, items, work.notes);
  if (items.empty() && ops.empty() && collectives.empty() && storage.empty())
    throw_usage(
        "calibrate: found no measurement of a work item, an op, a collective or storage in {} profile(s), allowed is "
        "at least one; run 'windtunnel bench kernels'",
        profiles.size());
  calibrate_items(items, work);
  if (work.data.synchronous_host) calibrate_crowding(crowded, work);
  calibrate_ops(ops, work);
  calibrate_collectives(collectives, work);
  calibrate_storage(storage, work);
  if (!work.data.synchronous_host)
    work.data.communication_slowdown = measured_slowdown(besides).value_or(published_slowdown());
  return {MachineModel(std::move(work.data)), std::move(work.residuals), std::move(work.notes)};
}

bool calibrated_on(const MachineData& machine, const Profile& profile) {
  const auto fact = machine.fingerprint.find(kCalibratedOn);
  if (fact == machine.fingerprint.end())
    throw_usage(
        "machine model: found none of the profiles it was calibrated on in its fingerprint, needs '{}'; it was made by "
        "an older version: run windtunnel calibrate again",
        kCalibratedOn);
  return fact->second.find(digest(profile)) != std::string::npos;
}

}  // namespace wt
