#include "planner/money/cost.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/hash.hpp"
#include "configs/base/statistics.hpp"
#include "planner/money/draws.hpp"

namespace wt {
namespace {

constexpr double kHour_s = 3600, kDay_hours = 24, kTB_bytes = 1e12, kJ_per_kWh = 3.6e6;

using BucketSeconds = std::array<double, kBuckets>;

/// An amount in each draw. One without a range is the same in all.
class DrawnAmount {
 public:
  DrawnAmount(const std::optional<PriceAmount>& amount, const CostInput& input, std::uint64_t what) : amount_(amount) {
    if (amount && amount->low < amount->high) z_ = stratified_normals(input.runs, input.price_seed ^ splitmix64(what));
  }
  explicit operator bool() const { return amount_.has_value(); }
  /// Normal around the middle of the range, at least 0.
  double in(std::size_t draw) const {
    if (!amount_) return 0;
    if (z_.empty()) return amount_->low;
    return std::max(0.0, amount_->middle() + z_[draw] * (amount_->high - amount_->low) / (2 * kAt90));
  }
  /// Relative to the middle.
  double relative(std::size_t draw) const {
    return amount_ && amount_->middle() > 0 ? in(draw) / amount_->middle() : 1;
  }

 private:
  std::optional<PriceAmount> amount_;
  std::vector<double> z_;
};

/// Power of the whole job in watts, by bucket, without the building.
class JobPower {
 public:
  explicit JobPower(const CostInput& input) : input_(input) {
    if (!input.prices || !input.prices->power) return;
    power_ = input.prices->power;
    z_ = stratified_normals(input.runs, input.price_seed ^ splitmix64(kWhat));
  }
  explicit operator bool() const { return power_.has_value(); }
  BucketSeconds watts(std::size_t draw) const {
    BucketSeconds out{};
    const double gpus = static_cast<double>(input_.gpus), spare_gpus = static_cast<double>(input_.spare_gpus);
    const NodeWatts node = node_watts(*power_, z_[draw]);
    const double step = node.of_gpu(input_.step);
    const double always = static_cast<double>(input_.nodes + input_.spare_nodes) * node.host + spare_gpus * node.idle;
    for (std::size_t b = 0; b < kBuckets; ++b) {
      const Bucket bucket = static_cast<Bucket>(b);
      const bool steps = bucket == Bucket::productive || bucket == Bucket::wasted_progress;
      // In `other`, collectives wait.
      const double each = steps ? step : bucket == Bucket::other ? node.communicate : node.idle;
      out[b] = always + gpus * each;
    }
    return out;
  }

 private:
  static constexpr std::uint64_t kWhat = 5;

  const CostInput& input_;
  std::optional<PowerSpec> power_;
  std::vector<double> z_;
};

/// A step time for each draw: log-normal on either side of the prediction, with the interval's ends at 10 and 90 %.
std::vector<double> drawn_steps(const CostInput& input) {
  const double step_s = input.scenario.step_s;
  std::vector<double> out(static_cast<std::size_t>(input.runs), step_s);
  const bool certain = !(input.step.low_s > 0) || input.step.low_s >= input.step.high_s;
  if (certain || input.step.low_s > step_s || input.step.high_s < step_s) return out;
  const std::vector<double> z = stratified_normals(input.runs, input.step_seed);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = step_s * std::pow((z[i] < 0 ? input.step.low_s : input.step.high_s) / step_s, std::abs(z[i]) / kAt90);
  return out;
}

CostRange range_of(const std::vector<double>& values) {
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95), mean(values)};
}

std::vector<std::string> without_price(const std::optional<PriceSpec>& given) {
  const PriceSpec p = given.value_or(PriceSpec{});
  std::vector<std::string> out;
  if (!p.gpu_hour) out.emplace_back("GPU-hours (gpu_hour)");
  if (!p.gpu_hour) out.emplace_back("spare nodes (spare_gpu_hour)");
  if (!p.storage_tb_month) out.emplace_back("stored checkpoints (storage_tb_month)");
  if (!p.egress_tb) out.emplace_back("taking the last checkpoint out (egress_tb)");
  if (!p.power) out.emplace_back("energy (power)");
  if (p.power && !p.pue) out.emplace_back("energy of the building beyond the servers (pue)");
  if (!p.carbon_kg_kwh) out.emplace_back("carbon (carbon_kg_kwh)");
  return out;
}

/// Sums over draws.
class CostSum {
 public:
  explicit CostSum(const CostInput& input)
      : input_(input),
        prices_(input.prices.value_or(PriceSpec{})),
        gpu_(prices_.gpu_hour, input, 1),
        spare_(prices_.spares_as_gpus ? std::optional<PriceAmount>() : prices_.spare_gpu_hour, input, 2),
        storage_(prices_.storage_tb_month, input, 3),
        egress_(prices_.egress_tb, input, 4),
        pue_(prices_.pue, input, 6),
        carbon_(prices_.carbon_kg_kwh, input, 7),
        power_(input) {}

  void add(const RunOutcome& run) {
    const std::size_t i = cost_.draws.size();
    const double gpus = static_cast<double>(input_.gpus), spares = static_cast<double>(input_.spare_gpus);
    const double hours = run.wall_s() / kHour_s;
    const double priced = gpu_ ? gpu_.relative(i) * (gpus + (prices_.spares_as_gpus ? spares : 0)) : 0;
    const double hourly_others = spares * spare_.in(i);
    const double storage = input_.kept_bytes / kTB_bytes * run.wall_s() / kMonth_s * storage_.in(i);
    const double egress = input_.taken_bytes / kTB_bytes * egress_.in(i);
    const double hourly = priced * middle_price() + hourly_others;
    const BucketSeconds watts = power_ ? power_.watts(i) : BucketSeconds{};
    const double building = pue_ ? pue_.in(i) : 1;
    CostDraw draw{gpus * hours, priced * hours, hourly_others * hours + storage + egress, 0};
    for (std::size_t b = 0; b < kBuckets; ++b) {
      const double spent_s = run.bucket_s(static_cast<Bucket>(b));
      const double kWh = building * watts[b] * spent_s / kJ_per_kWh;
      draw.kWh += kWh;
      BucketCost& bucket = cost_.buckets[b];
      bucket.gpu_hours += gpus * spent_s / kHour_s;
      bucket.money += hourly * spent_s / kHour_s;
      bucket.kWh += kWh;
    }
    cost_.spare_gpu_hours += spares * hours;
    cost_.storage_money += storage;
    cost_.egress_money += egress;
    carbon_kg_.push_back(draw.kWh * carbon_.in(i));
    cost_.draws.push_back(draw);
  }

  Cost result() && {
    const double n = static_cast<double>(cost_.draws.size());
    for (BucketCost& bucket : cost_.buckets) bucket.gpu_hours /= n, bucket.money /= n, bucket.kWh /= n;
    for (double* sum : {&cost_.spare_gpu_hours, &cost_.storage_money, &cost_.egress_money}) *sum /= n;
    std::vector<double> days, hours, money, kWh;
    for (const CostDraw& draw : cost_.draws) {
      days.push_back(draw.gpu_hours / static_cast<double>(input_.gpus) / kDay_hours);
      hours.push_back(draw.gpu_hours);
      money.push_back(money_at(draw, middle_price()));
      kWh.push_back(draw.kWh);
    }
    cost_.days = range_of(days);
    cost_.gpu_hours = range_of(hours);
    if (costs_money(input_.prices)) cost_.money = range_of(money);
    if (power_) cost_.energy = range_of(kWh);
    if (power_ && carbon_) cost_.carbon = range_of(carbon_kg_);
    cost_.prices = input_.prices;
    cost_.not_priced = without_price(input_.prices);
    return std::move(cost_);
  }

 private:
  double middle_price() const { return prices_.gpu_hour ? prices_.gpu_hour->middle() : 0; }

  const CostInput& input_;
  const PriceSpec prices_;
  const DrawnAmount gpu_, spare_, storage_, egress_, pue_, carbon_;
  const JobPower power_;
  std::vector<double> carbon_kg_;
  Cost cost_;
};

}  // namespace

bool costs_money(const std::optional<PriceSpec>& prices) {
  return prices && (prices->gpu_hour || prices->storage_tb_month || prices->egress_tb);
}

Cost estimate_cost(const CostInput& input) {
  CostSum sum(input);
  const std::vector<double> steps = drawn_steps(input);
  for (std::int64_t i = 0; i < input.runs; ++i) {
    RunScenario scenario = input.scenario;
    scenario.step_s = steps[static_cast<std::size_t>(i)];
    sum.add(input.run(scenario, i));
  }
  return std::move(sum).result();
}

double money_at(const CostDraw& draw, double gpu_hour) { return draw.priced_hours * gpu_hour + draw.other_money; }

std::optional<double> break_even_gpu_hour(const Cost& cost, double money) {
  const auto p50 = [&](double gpu_hour) {
    std::vector<double> values;
    for (const CostDraw& draw : cost.draws) values.push_back(money_at(draw, gpu_hour));
    return quantile(std::move(values), 0.5);
  };
  const bool charged = std::ranges::any_of(cost.draws, [](const CostDraw& draw) { return draw.priced_hours > 0; });
  if (!charged || p50(0) > money) return {};
  double low = 0, high = 1;
  while (p50(high) < money) high *= 2;  // P50 grows with the price without limit
  for (int halving = 0; halving < 100; ++halving) {
    const double middle = (low + high) / 2;
    (p50(middle) < money ? low : high) = middle;
  }
  return high;
}

}  // namespace wt
