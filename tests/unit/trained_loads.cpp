// Loads of experts in training: what shrinks with tokens, what stays, and what no load may exceed.
#include "sim/program/routing/trained_loads.hpp"
#include "configs/files/study.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/program/routing/named_routing.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;

namespace {

constexpr double kEndless = 1e18;
constexpr Balancing kAll[] = {Balancing::loss, Balancing::bias, Balancing::none};

ModelSpec model_of(std::int64_t experts, std::int64_t top_k) {
  ModelSpec model;
  model.layers = 48, model.experts = experts, model.top_k = top_k;
  return model;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double deviation(const std::vector<double>& shares) {
  double squares = 0;
  for (const double share : shares) squares += std::pow(share * static_cast<double>(shares.size()) - 1, 2);
  return std::sqrt(squares / static_cast<double>(shares.size()));
}

double mean_fullest(const TrainedLoads& loads, const ModelSpec& model, std::int64_t ranks, double tokens) {
  Layout layout;
  layout.shard = layout.expert = ranks;
  double total = 0;
  const auto rows = trained_shares(loads, model, tokens);
  for (std::size_t layer = 0; layer < rows.size(); ++layer) {
    const std::vector<double> received = rows_received({rows[layer]}, layout, static_cast<std::int64_t>(layer));
    total += *std::max_element(received.begin(), received.end()) * static_cast<double>(ranks);
  }
  return total / static_cast<double>(rows.size());
}

std::string said_of(const std::string& name, std::int64_t experts = 16) {
  return test::usage_error([&] { read_scenarios({name}, model_of(experts, experts / 4)); });
}

}  // namespace

TEST_CASE("every choice goes to an expert, none gets more than all tokens, layers differ, runs do not") {
  for (const Balancing balancing : kAll)
    for (const auto& [experts, top_k] : {std::pair{8, 2}, {16, 4}, {64, 8}, {128, 8}, {256, 8}, {6, 3}})
      for (const double tokens : {1.0, 512.0, 32768.0, kEndless}) {
        const ModelSpec model = model_of(experts, top_k);
        const auto shares = trained_shares(trained_loads(balancing), model, tokens);
        CAPTURE(to_string(balancing), experts, tokens);
        REQUIRE(shares.size() == 48);
        for (const auto& layer : shares) {
          REQUIRE(layer.size() == static_cast<std::size_t>(experts));
          CHECK(sum(layer) == Approx(1));
          CHECK(*std::max_element(layer.begin(), layer.end()) <= 1.0 / top_k + 1e-12);
          CHECK(*std::min_element(layer.begin(), layer.end()) >= 0);
        }
        CHECK(shares[0] != shares[1]);
        CHECK(trained_shares(trained_loads(balancing), model, tokens) == shares);
      }
}

TEST_CASE("with endless tokens the lasting part is left, without one balance") {
  const ModelSpec model = model_of(64, 8);
  for (const Balancing balancing : kAll) {
    const TrainedLoads loads = trained_loads(balancing);
    CHECK(unevenness(loads, model, kEndless) == Approx(loads.lasting * (1 - 8. / 64)));
    CHECK(unevenness(loads, model, 4096) > unevenness(loads, model, 8192));
  }
  CHECK(deviation(trained_shares(trained_loads(Balancing::loss), model, kEndless)[5]) == Approx(0.2625).epsilon(0.05));
  CHECK(deviation(trained_shares({}, model, kEndless)[5]) == Approx(0).margin(1e-6));
  // Tokens that choose without regard to one another: binomial counts.
  CHECK(unevenness({}, model, 700) == Approx(std::sqrt((64. / 8 - 1) / 700)));
}

TEST_CASE("where tokens take every expert, loads are even") {
  const ModelSpec model = model_of(4, 4);
  for (const Balancing balancing : kAll) {
    const auto shares = trained_shares(trained_loads(balancing), model, 10);
    for (const double share : shares[3]) CHECK(share == Approx(0.25));
    CHECK(fullest_rank(trained_loads(balancing), model, 4, 10, 0.99) == Approx(1));
  }
}

TEST_CASE("the fullest rank: more ranks have a fuller one, its quantiles bound its mean, one rank has all") {
  for (const Balancing balancing : kAll) {
    const TrainedLoads loads = trained_loads(balancing);
    const ModelSpec model = model_of(128, 8);
    double before = 1;
    for (std::int64_t ranks = 2; ranks <= 128; ranks *= 2) {
      CAPTURE(to_string(balancing), ranks);
      const double mean = mean_fullest(loads, model, ranks, 32768);
      CHECK(mean > before);
      CHECK(mean > fullest_rank(loads, model, ranks, 32768, 0.1));
      CHECK(mean < fullest_rank(loads, model, ranks, 32768, 0.9));
      CHECK(fullest_rank(loads, model, ranks, 32768, 0.99) > fullest_rank(loads, model, ranks, 32768, 0.5));
      CHECK(fullest_rank(loads, model, ranks, 1, 0.99) <= 128. / 8);
      before = mean;
    }
    CHECK(fullest_rank(loads, model, 1, 32768, 0.99) == 1);
  }
}

TEST_CASE("four ranks that LAER recorded without balancing are as full as the loads say") {
  // bench/studies/loads/fit.py: mean and p99 of the fullest of four ranks, 65,536 tokens together.
  const TrainedLoads loads = trained_loads(Balancing::none);
  const ModelSpec two_of_eight = model_of(8, 2), four_of_sixteen = model_of(16, 4);
  CHECK(mean_fullest(loads, two_of_eight, 4, 65536) == Approx(1.52).epsilon(0.12));
  CHECK(mean_fullest(loads, four_of_sixteen, 4, 65536) == Approx(1.63).epsilon(0.12));
  CHECK(fullest_rank(loads, four_of_sixteen, 4, 65536, 0.99) == Approx(2.68).epsilon(0.12));
  CHECK(fullest_rank(loads, two_of_eight, 4, 65536, 0.99) > 2.16);
}

TEST_CASE("a router is balanced as its model says: by bias where it has one, by loss, or not") {
  RouterSpec router;
  CHECK(balancing_of(router) == Balancing::loss);
  router.bias_update_rate = 0.001;
  CHECK(balancing_of(router) == Balancing::bias);
  router.bias_update_rate = router.aux_loss_weight = 0;
  CHECK(balancing_of(router) == Balancing::none);
  ModelSpec model = model_of(64, 8);
  const auto lasting = [&](const char* name) { return read_scenarios({name}, model).at(0).trained->lasting; };
  CHECK(lasting("trained") == lasting("trained-loss"));
  CHECK(lasting("trained-bias") < lasting("trained-loss"));
  CHECK(lasting("trained-loss") < lasting("trained-none"));
  model.router.bias_update_rate = 0.001;
  CHECK(lasting("trained") == lasting("trained-bias"));
  CHECK(read_scenarios({"trained"}, model)[0].evidence.kind == Evidence::assumed);
}

TEST_CASE("a microbatch's loads depend on the tokens of the whole expert group") {
  const ModelSpec model = model_of(64, 8);
  const auto routed = [&](std::int64_t tokens, std::int64_t ranks) {
    return read_routing({"trained"}, model, {4, tokens, tokens}, ranks).source;
  };
  const std::vector<double> alone = routed(4096, 1)->counts(0, 0, 3, 0), together = routed(4096, 8)->counts(0, 0, 3, 0);
  CHECK(sum(alone) == Approx(4096 * 8));
  CHECK(sum(together) == Approx(4096 * 8));
  CHECK(*std::max_element(alone.begin(), alone.end()) > *std::max_element(together.begin(), together.end()));
  CHECK(routed(32768, 1)->counts(0, 0, 3, 0)[7] == Approx(8 * together[7]));
  CHECK(routed(4096, 8)->same_in_every_microbatch());
  CHECK(routed(4096, 8)->same_on_every_rank());
  CHECK(routed(4096, 8)->counts(0, 0, 1, 0) == routed(4096, 8)->counts(0, 0, 1, 7));
  CHECK(routed(4096, 8)->description() == "trained: loads of other models in training, balanced by loss (assumed)");
}

TEST_CASE("a capacity cuts the rows of an expert, and the description says how many are dropped") {
  const ModelSpec model = model_of(64, 8);
  const auto source = read_routing({"capacity-1.25"}, model, {1, 4096, 4096}, 8).source;
  const std::vector<double> rows = source->counts(0, 0, 0, 0),
                            all = read_routing({"trained"}, model, {1, 4096, 4096}, 1).source->counts(0, 0, 0, 0);
  double kept = 0;
  for (std::size_t e = 0; e < rows.size(); ++e) {
    CHECK(rows[e] == Approx(std::min(all[e], 1.25 * 4096 * 8 / 64)));
    kept += rows[e] / (4096 * 8);
  }
  CHECK(kept < 0.99);
  CHECK(source->description() == fmt::format("capacity-1.25: loads of other models in training, balanced by loss, "
                                             "{:.1f} % of the rows dropped (assumed)",
                                             100 * (1 - kept)));
  const TrainedLoads cut = *read_scenarios({"capacity-1"}, model)[0].trained;
  CHECK(fullest_rank(cut, model, 64, 4096, 0.99) == 1);
}

TEST_CASE("a router that pads gives every expert its capacity, and no rank more") {
  ModelSpec model = model_of(64, 8);
  model.router.capacity_factor = 1.25, model.router.padded = true;
  for (const char* name : {"balanced", "trained", "capacity-1.25"}) {
    const auto source = read_routing({name}, model, {1, 4096, 4096}, 8).source;
    for (const double rows : source->counts(0, 0, 0, 0)) CHECK(rows == 1.25 * 4096 * 8 / 64);
  }
  CHECK(routing_for_model(model) == std::vector<std::string>{"capacity-1.25"});
}

TEST_CASE("names that mean nothing are refused") {
  CHECK(said_of("trained-luck").find("allowed are trained, trained-loss") != std::string::npos);
  for (const char* name : {"capacity-", "capacity-x", "capacity-0.9", "capacity-2x", "capacity-nan", "capacity-1e9"})
    CHECK(said_of(name).find("needs capacity-X") != std::string::npos);
  CHECK(said_of("trained", 0).find("without experts") != std::string::npos);
}
