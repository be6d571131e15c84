// What stands behind `windtunnel validate routing`: even loads are the balanced step, a hot rank stretches the experts'
// part alone, the stack's constant is recovered from steps made with it, and what cannot be known is not predicted.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/support/error.hpp"
#include "sim/validate/ratios.hpp"
#include "sim/validate/routed_case.hpp"
#include "sim/validate/routed_step.hpp"
#include "sim/validate/routing.hpp"
#include "tests/support/made_up_waves.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/usage_error.hpp"

using namespace wt;

namespace {

const ItemTimes& gpus() {
  static const ItemTimes made = [] {
    std::vector<KernelRow> kernels;
    for (const double n : {1024., 4096., 8192.})
      for (const double k : {2048., 8192.})
        for (double m = 128; m <= 32768; m *= 1.6) {
          kernels.push_back(test::timed_kernel("A100-80G-SXM", "gemm", "fp16", m, n, k,
                                               wave_time_s({m, n, k}, *data_sheet("A100-80G-SXM"),
                                                           {4e-6, 0.5e-6, 0.9, 0.6, {0.45, 0.6, 0.7, 0.8}, 2e-6, 3})));
        }
    return ItemTimes(kernels);
  }();
  return made;
}

/// All-to-alls inside a node at 210 GB/s.
const CollectiveEstimator& fabric() {
  static const CollectiveEstimator made = [] {
    std::vector<CollectiveRow> collectives;
    for (double bytes = 1 << 20; bytes <= 4e9; bytes *= 4) {
      CollectiveRow row;
      row.gpu = "A100-80G-SXM";
      row.kind = OpKind::all_to_all;
      row.gpus = 8;
      row.bytes = bytes;
      row.seconds = 30e-6 + bytes * 7 / 8 / 210e9;
      collectives.push_back(row);
    }
    return CollectiveEstimator(points_of(collectives));
  }();
  return made;
}

RoutedSetup setup(const std::string& name, std::int64_t experts = 8) {
  RoutedSetup s;
  ModelSpec& model = s.run.model;
  model.name = name;
  model.layers = 4;
  model.d_model = 1024;
  model.ffn = 4096;
  model.experts = experts;
  model.top_k = 2;
  model.heads = model.kv_heads = 8;
  model.head_dim = 128;
  model.vocab = 32000;
  s.run.gpu = "A100-80G-SXM";
  s.run.gpus = s.run.dp = s.run.shard_group = 8;
  s.run.ep = 4;
  s.run.zero_stage = 3;
  s.run.recompute = Recompute::block;
  s.run.seq = 4096;
  s.run.microbatch = s.run.accumulation = 2;
  s.loads_dataset = "books";
  return s;
}

RoutedContext context() {
  RoutedContext c;
  for (const char* name : {"small", "other", "wider"}) c.setups[name] = setup(name);
  c.setups["many experts"] = setup("many experts", 16);
  for (const char* name : {"small", "wider"}) {
    c.loads[{name, "spread"}] = {{1.1, 1.3}};
    c.loads[{name, "hot"}] = {{2.0, 2.2}, {1.6, 1.8}};
  }
  return c;
}

/// Steps that take `stack` times their work.
std::vector<PlacedStep> steps_of(const RoutedContext& c, double stack) {
  std::vector<PlacedStep> rows;
  for (const char* model : {"small", "wider"})
    for (const char* dataset : {"books", "code"})
      for (const char* method : {"spread", "hot"}) {
        const double seconds =
            RoutedStep(c.setups.at(model).run, gpus(), fabric()).seconds(c.loads.at({model, method})).all;
        rows.push_back({static_cast<std::int64_t>(rows.size()) + 2, dataset, method, model, 0, stack * seconds});
      }
  return rows;
}

using Words = std::vector<std::string>;

PlacedStep asked(const std::string& method, const std::string& model) { return {2, "books", method, model, 0, 1}; }

const std::string kSetupHeader =
    "model_name,layers,hidden,ffn,experts,top_k,heads,kv_heads,vocabulary,sequences,sequence_tokens,microbatches,gpu,"
    "gpus,gpus_per_node,interconnect,expert_parallel,loads_dataset,loads_aux_loss,source\n";
const std::string kSteps =
    "dataset,method,model_name,aux_loss,avg_time_ms,std_time_ms,matched_iterations,total_iterations\n";

}  // namespace

TEST_CASE("even loads take the balanced step, and a hot rank stretches what is routed alone") {
  const RoutedSetup s = setup("small");
  const RoutedStep step(s.run, gpus(), fabric());
  const RoutedStep::Seconds even = step.balanced(), hot = step.seconds({{2.0}});
  CHECK(step.seconds({{1, 1}, {1, 1}}).all == Approx(even.all));
  CHECK(hot.routed < 2 * even.routed);  // launches and last waves do not double
  CHECK(hot.routed > 1.9 * even.routed);
  CHECK(hot.all - hot.routed == Approx(even.all - even.routed));
  CHECK(step.seconds({{1, 2}}).routed == Approx((even.routed + hot.routed) / 2));
  CHECK(step.seconds({{1}, {2}}).all == Approx(step.seconds({{1}, {2}, {1}, {2}}).all));  // 4 layers, in order
  // Experts' products: 3 of width x ffn, once forward, once again, twice backward, at 80 % of peak or less.
  const double rows = 2. * 4096 * 2, flops = 4 * 3 * 2 * rows * 1024 * 4096 * 4 * 2;
  CHECK(even.routed > flops / (0.8 * 312e12));
  CHECK(even.routed < 2 * flops / (0.8 * 312e12));
}

TEST_CASE("experts that no other rank holds depend on no rank's load") {
  RoutedSetup s = setup("small");
  s.run.ep = 1;
  const RoutedStep step(s.run, gpus(), fabric());
  CHECK(step.balanced().routed == 0);
  CHECK(step.seconds({{3.0}}).all == step.balanced().all);
}

TEST_CASE("the stack's constant comes from other groups, and placements compare without it") {
  const RoutedContext c = context();
  std::vector<PlacedStep> rows = steps_of(c, 1.4);
  for (const auto left_out : {RoutingLeftOut::setting, RoutingLeftOut::model}) {
    const std::vector<Judged> judged =
        judge_routing(rows, rows, c, gpus(), fabric(), left_out);  // a row in both counts once
    REQUIRE(judged.size() == rows.size());
    for (const Judged& j : judged) {
      INFO(j.name);
      CHECK(*j.forecast.value == Approx(j.measured));
      CHECK(j.forecast.low == Approx(j.measured));  // no error, no width
      CHECK(j.forecast.high == Approx(j.measured));
    }
    const std::vector<Ratio> pairs = ratios(judged);
    REQUIRE(pairs.size() == 4);
    for (const Ratio& r : pairs) {
      CHECK(r.slower == "hot");
      CHECK(r.faster == "spread");
      CHECK(r.predicted == Approx(r.measured));
      CHECK(r.baseline == Approx(1));
    }
    CHECK(accuracy(judged, &Judged::forecast).regret == 0.0);
  }
  const double before = *judge_routing(rows, {}, c, gpus(), fabric())[0].forecast.value;
  rows[0].seconds *= 10, rows[1].seconds *= 10;  // its own group
  const std::vector<Judged> spoiled = judge_routing(rows, {}, c, gpus(), fabric());
  CHECK(*spoiled[0].forecast.value == Approx(before).epsilon(1e-12));
  CHECK(*spoiled[2].forecast.value == Approx(before));  // a third of the others is spoiled: the median stays
}

TEST_CASE("what was assumed of loads is said, and what cannot be known is a reason") {
  const RoutedContext c = context();
  std::vector<PlacedStep> rows = steps_of(c, 1.4);
  rows.push_back({10, "books", "hot", "other", 0, 1});
  rows.push_back({11, "books", "hot", "many experts", 0, 1});
  rows.push_back({12, "books", "no such", "small", 0, 1});
  rows.push_back({13, "books", "hot", "no such", 0, 1});
  rows.push_back({14, "books", "hot", "small", 0.01, 1});
  const std::vector<Judged> judged = judge_routing(rows, {}, c, gpus(), fabric());
  CHECK(judged[0].regime == "loads recorded");
  CHECK(judged[0].forecast.evidence == only(Evidence::published));
  CHECK(judged[0].assumed.empty());
  CHECK(judged[2].assumed == Words{"loads as on books with a balancing loss of 0"});
  CHECK(judged[8].assumed == Words{"loads of hot on small"});
  CHECK(judged[2].regime == "loads assumed: recorded on another data set or loss");
  CHECK(judged[8].regime == "loads assumed: recorded on another model");
  CHECK(judged[8].forecast.value.has_value());
  CHECK(judged[8].forecast.evidence[static_cast<std::size_t>(Evidence::assumed)] > 0.1);
  CHECK(judged[9].regime == "loads assumed: recorded for other experts or ranks");
  CHECK(judged[9].assumed == Words{"loads of hot on small with 8 experts, top 2, expert groups of 4"});
  CHECK(judged[10].forecast.reason ==
        "no rank loads of method 'no such' of any model, and its layout is not known; recorded are hot, spread");
  CHECK(judged[11].forecast.reason.find("no shape and layout of model 'no such'") == 0);
  CHECK(judged[12].regime == judged[2].regime);

  RoutedContext unmeasured = c;
  unmeasured.setups["small"].run.gpu = "Imaginary X1";
  CHECK(judge_routing(rows, {}, unmeasured, gpus(), fabric())[0].forecast.reason == "no data sheet of 'Imaginary X1'");
  const std::vector<Judged> alone = judge_routing({rows[0], rows[1]}, {}, c, gpus(), fabric());
  CHECK(alone[0].forecast.reason == "no other group to find the stack's constant on");
  CHECK_FALSE(alone[0].baseline.value);
}

TEST_CASE("names are compared by letters and digits, and methods by the artifact's other names") {
  RoutedContext c;
  c.setups["mixtral-8x7b-e8k2"] = setup("mixtral-8x7b-e8k2");
  for (const char* method : {"FSDP", "FLEX", "LAER"}) c.loads[{"mixtral-8x7b-e8k2", method}] = {{1.5}};
  for (const auto& [said, recorded] : std::map<std::string, std::string>{
           {"FSDP+EP", "FSDP"}, {"fsdp_ep", "FSDP"}, {"FlexMoE", "FLEX"}, {"flex", "FLEX"}, {"LAER-MoE", "LAER"}}) {
    INFO(said);
    const RoutedCase found = routed_case(asked(said, "Mixtral_8x7B-e8k2"), c);
    CHECK(found.basis == RoutedBasis::recorded);
    CHECK(found.recording.second == recorded);
    CHECK(found.model == "mixtral-8x7b-e8k2");  // left out together with what is recorded under that name
    CHECK(found.assumed.empty());
  }
  for (const char* method : {"megatron", "FSD", "EP", ""})
    CHECK(routed_case(asked(method, "mixtral-8x7b-e8k2"), c).unknown == "no loads");
  c.loads[{"mixtral-8x7b-e8k2", "FlexMoE"}] = {{1.2}};  // its own name comes before another one of it
  CHECK(routed_case(asked("FlexMoE", "mixtral-8x7b-e8k2"), c).shares[0][0] == 1.2);
}

TEST_CASE("loads of other experts or ranks are the nearest recorded of the method, no more than possible") {
  RoutedContext c;
  c.setups["few"] = setup("few", 8);
  c.setups["more"] = setup("more", 32);
  c.loads[{"few", "hot"}] = {{3.0, 1.5}};
  c.loads[{"more", "hot"}] = {{2.5}};
  c.setups["asked"] = setup("asked", 24);
  CHECK(routed_case(asked("hot", "asked"), c).recording.first == "more");
  c.setups["asked"] = setup("asked", 12);
  CHECK(routed_case(asked("hot", "asked"), c).recording.first == "few");
  CHECK(routed_case(asked("hot", "asked"), c).basis == RoutedBasis::other_experts);
  // Two groups of ranks, each with four experts: a rank cannot have more than all rows, twice the mean.
  c.setups["asked"] = setup("asked", 8);
  c.setups["asked"].run.ep = 2;
  CHECK(routed_case(asked("hot", "asked"), c).shares == FullestShares{{2.0, 1.5}});
  // One expert a rank, both choices of a token go to different ones: at most half of its rows are one rank's.
  c.setups["asked"] = setup("asked", 4);
  CHECK(routed_case(asked("hot", "asked"), c).shares == FullestShares{{2.0, 1.5}});
  c.setups.erase("few"), c.setups.erase("more");  // nobody says of what experts the recordings are
  CHECK(routed_case(asked("hot", "asked"), c).unknown == "no loads");
}

TEST_CASE("a variant that nobody set up is its base with other experts in the nearest layout") {
  RoutedContext c;
  c.setups["base-e8k2"] = setup("base-e8k2");
  c.setups["base-e16k4"] = setup("base-e16k4", 16);
  c.setups["base-e16k4"].run.model.top_k = 4;
  c.setups["base-e16k4"].run.model.ffn = 2048;
  c.setups["base-e16k4"].run.gpus_per_node = 4;
  for (const char* name : {"base-e8k2", "base-e16k4"}) c.loads[{name, "hot"}] = {{2.0}};

  const RoutedCase fine = routed_case(asked("hot", "Base-E32K8"), c);
  CHECK(fine.basis == RoutedBasis::other_shape);
  CHECK(fine.setup.run.model.experts == 32);
  CHECK(fine.setup.run.model.top_k == 8);
  CHECK(fine.setup.run.model.ffn == 1024);  // experts cut in two again: a token passes as much width
  CHECK(fine.setup.run.gpus_per_node == 4);
  REQUIRE(fine.assumed.size() == 3);
  CHECK(fine.assumed[0] == "shape of base-e16k4 with 32 experts of width 1024, top 8");
  CHECK(fine.assumed[1].find("layout of base-e16k4: 8 x A100-80G-SXM, expert groups of 4") == 0);
  CHECK(fine.assumed[2] == "loads of hot on base-e16k4 with 16 experts, top 4, expert groups of 4");

  const RoutedCase more = routed_case(asked("hot", "base-e10k2"), c);  // only one of the two grows: whole experts
  CHECK(more.setup.run.model.ffn == 4096);
  CHECK(more.setup.run.ep == 2);  // ranks share 10 experts evenly
  CHECK(routed_case(asked("hot", "base"), c).setup.run.model.experts == 8);

  ModelSpec dense = setup("dense").run.model, known = dense;
  dense.name = "dense-7b", dense.experts = dense.top_k = 0;
  known.name = "known", known.layers = 6;
  c.models = {dense, known};
  CHECK(routed_case(asked("hot", "known"), c).setup.run.model.layers == 6);
  CHECK(routed_case(asked("hot", "known-e8k2"), c).assumed[0] == "shape of known");
  CHECK(routed_case(asked("hot", "dense-7b-e4k1"), c).assumed[0] ==
        "shape of dense-7b with 4 experts of width 4096, top 1");
  RoutedSetup beside = setup("far", 64);
  beside.beside = true;
  c.setups["far"] = beside;
  CHECK(routed_case(asked("hot", "known"), c).assumed[1].find("layout of far: ") == 0);  // of the file's own cluster

  for (const char* name :
       {"dense-7b", "dense-7b-e0k0", "base-e8k0", "base-e2k4", "base-e8", "e8k2", "other-e8k2", ""}) {
    INFO(name);
    CHECK(routed_case(asked("hot", name), c).unknown == "no shape");
  }
}

TEST_CASE("assumptions make intervals no narrower, and are judged by what they would do to recorded rows") {
  RoutedContext c = context();
  c.setups["small-e8k2"] = c.setups.at("small"), c.setups["small-e8k2"].run.model.name = "small-e8k2";
  c.setups["small-e8k2"].run.model.layers = 12;  // another depth behind the base's name: what a shape hidden is off by
  std::vector<PlacedStep> rows = steps_of(c, 1.4);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].seconds *= i % 2 ? 1.05 : 0.95;
  const std::vector<Judged> before = judge_routing(rows, {}, c, gpus(), fabric());
  std::vector<PlacedStep> with = rows;
  for (const char* model : {"many experts", "small-e16k4"}) with.push_back({20, "books", "hot", model, 0, 100});
  const std::vector<Judged> after = judge_routing(with, {}, c, gpus(), fabric());
  double low = 1, high = 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(after[i].name);
    // Rows with assumptions say nothing of the others.
    CHECK(*after[i].forecast.value == Approx(*before[i].forecast.value).epsilon(1e-12));
    CHECK(after[i].forecast.low == Approx(before[i].forecast.low).epsilon(1e-12));
    CHECK(after[i].forecast.high == Approx(before[i].forecast.high).epsilon(1e-12));
    if (after[i].regime != "loads recorded") continue;
    low = std::min(low, after[i].forecast.low / *after[i].forecast.value);
    high = std::max(high, after[i].forecast.high / *after[i].forecast.value);
  }
  CHECK(low < 1);
  CHECK(high > 1);
  for (const Judged& j : after) {
    if (j.regime == "loads recorded") continue;
    INFO(j.name);
    CHECK(j.forecast.low <= *j.forecast.value * low * 1.0001);
    CHECK(j.forecast.high >= *j.forecast.value * high * 0.9999);
  }
  const Judged& shape = after.back();
  CHECK(shape.regime == "shape or layout assumed");
  CHECK(shape.forecast.evidence == only(Evidence::assumed));
  const auto width = [](const Judged& j) { return j.forecast.high / j.forecast.low; };
  CHECK(width(shape) > 2 * width(after.front()));  // three times the layers
}

TEST_CASE("ratios are of pairs of one choice, the slower one above") {
  std::vector<Judged> rows(4);
  const double measured[] = {2, 4, 5, 1}, predicted[] = {3, 3, 4, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    rows[i].choice = i < 3 ? "a" : "b";
    rows[i].alternative = std::string(1, static_cast<char>('x' + static_cast<char>(i)));
    rows[i].measured = measured[i];
    rows[i].forecast.value = predicted[i];
    rows[i].baseline.value = 7;
  }
  std::vector<Ratio> pairs = ratios(rows);
  REQUIRE(pairs.size() == 3);
  CHECK(pairs[0].slower == "y");
  CHECK(pairs[0].measured == 2);
  CHECK(pairs[0].predicted == 1);
  CHECK(pairs[2].measured == Approx(1.25));
  const RatioError error = ratio_error(pairs, &Ratio::predicted);
  CHECK(error.mean == Approx((1. / 2 + 7. / 15 + 1. / 15) / 3));
  CHECK(error.largest == Approx(0.5));
  CHECK(ratio_error(pairs, &Ratio::baseline).largest == Approx(0.6));
  rows[1].forecast.value.reset();
  CHECK(ratios(rows).size() == 1);
  CHECK_THROWS_AS(ratio_error({}, &Ratio::predicted), Error);
}

TEST_CASE("of rank loads the fullest rank's share of the settled iterations counts") {
  const test::TempDirectory folder;
  const auto file = folder / "loads.csv";
  std::string text = "method,model,layer,iter,r0,r1,r2,r3\n";
  for (int iteration = 0; iteration < 7; ++iteration)
    for (int layer = 0; layer < 2; ++layer)
      text += "m,a," + std::to_string(layer) + "," + std::to_string(iteration) + ",1,1," + std::to_string(iteration) +
              "," + std::to_string(layer) + "\n";
  std::ofstream(file) << text;
  std::vector<std::string> refused;
  const auto loads = read_rank_loads(file, refused);
  CHECK(refused.empty());
  REQUIRE(loads.size() == 1);
  const FullestShares& shares = loads.at({"a", "m"});
  REQUIRE(shares.size() == 2);
  REQUIRE(shares[0].size() == kSettled);
  CHECK(shares[0][0] == Approx(4 * 2 / 4.));
  CHECK(shares[1][4] == Approx(4 * 6 / 9.));
}

TEST_CASE("tables beside the steps come before those of the tree") {
  const test::TempDirectory folder, tree;
  const std::string loads = "method,model,layer,iter,r0,r1\n",
                    shape = ",4,1024,4096,8,2,8,8,32000,32,4096,2,A100,8,8,,4,";
  std::ofstream(folder / "steps.csv") << kSteps << "books,hot,mine,0,1000,1,5,5\n";
  std::ofstream(folder / "a.csv") << loads << "hot,mine,0,0,3,1\n";
  std::ofstream(folder / "b.csv") << kSetupHeader << "mine" << shape << "books,0,here\n";
  std::ofstream(folder / "empty.csv") << "";  // somebody else's
  std::ofstream(tree / "a.csv") << loads << "hot,mine,0,0,1,1\ncold,mine,0,0,1,1\n";
  std::ofstream(tree / "b.csv") << kSetupHeader << "mine" << shape << "books,0,there\nyours" << shape << "x,0,there\n";
  const RoutedContext c = read_routed_context(folder / "steps.csv", tree.path());
  CHECK(c.loads.at({"mine", "hot"})[0][0] == Approx(1.5));
  CHECK(c.loads.count({"mine", "cold"}) == 1);
  CHECK(c.setups.at("mine").run.source == "here");
  CHECK(c.setups.at("mine").run.microbatch == 2);
  CHECK(c.setups.count("yours") == 1);
  CHECK(read_placed_steps(folder / "steps.csv").at(0).seconds == 1);
}

TEST_CASE("a line of a routing table that is not as it should be does not take the others away") {
  const test::TempDirectory folder;
  const auto file = folder / "t.csv";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(kSteps);
  CHECK(test::usage_error([&] { read_placed_steps(file); }).find("found no rows") != std::string::npos);
  write("dataset,method,model_name,aux_loss,avg_time_us\nb,m,a,0,1\n");
  CHECK(test::usage_error([&] { read_placed_steps(file); }).find("column 'avg_time_ms' missing") != std::string::npos);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"b,m,a,0,0,1,5,5", "column 'avg_time_ms': found 0"},
      {"b,m,a,0,,1,5,5", "column 'avg_time_ms': found nothing"},
      {"b,m,a,much,1,1,5,5", "column 'aux_loss': found 'much'"},
      {"b,m,a,0,1", "too few or too many cells"}};
  for (const auto& [line, reason] : wrong) {
    write(kSteps + "books,hot,small,0,1000,1,5,5\n" + line + "\nbooks,spread,small,,900,1,5,5\n");
    const auto rows = read_placed_steps(file);
    REQUIRE(rows.size() == 3);
    CHECK(rows[1].unusable.find(reason) != std::string::npos);
    const auto judged = judge_routing(rows, steps_of(context(), 2), context(), gpus(), fabric());
    CHECK((judged[0].forecast.value && judged[2].forecast.value));
    CHECK(judged[1].forecast.reason == rows[1].unusable);
  }

  // A recording that cannot be read whole is left out; the others stay.
  const auto loads = [&](const std::string& lines) {
    write("method,model,layer,iter,r0,r1\n" + lines + "good,a,0,0,3,1\n");
    std::vector<std::string> refused;
    CHECK(read_rank_loads(file, refused).count({"a", "good"}) == 1);
    CHECK(read_rank_loads(file, refused).size() == 1);
    REQUIRE_FALSE(refused.empty());
    return refused.front();
  };
  CHECK(loads("m,a,0,0,0,0\n").find("line 2: found no rows on any rank") != std::string::npos);
  CHECK(loads("m,a,0,0,1,-1\n").find("column 'r1': found '-1'") != std::string::npos);
  CHECK(loads("m,a,0,0,1,\n").find("column 'r1': found nothing") != std::string::npos);
  CHECK(loads("m,a,0,0.5,1,1\n").find("column 'iter': found '0.5'") != std::string::npos);
  CHECK(loads("m,a,0,3,1,1\nm,a,0,3,1,1\n").find("line 3: found iteration 3") != std::string::npos);
  CHECK(loads("m,a,1,0,1,1\n").find("found layer 1 with 1 iterations, needs every layer from 0") != std::string::npos);
  CHECK(loads("m,a,0,0,1,1\nm,a,0,1,1,1\nm,a,1,0,1,1\n").find("needs every layer from 0 with 2") != std::string::npos);
  std::vector<std::string> refused;
  for (const char* header : {"r0\nm,a,0,0,1\n", "r0,r2\nm,a,0,0,1,1\n"}) {
    write("method,model,layer,iter," + std::string(header));
    CHECK(test::usage_error([&] { read_rank_loads(file, refused); }) != "no error");
  }
}

TEST_CASE("shapes and layouts that cannot be are left out, and why is said") {
  const test::TempDirectory folder;
  const auto file = folder / "t.csv";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const auto setups = [&](const std::string& text) {
    write(kSetupHeader + text + ",books,0,here\n");
    std::vector<std::string> refused;
    CHECK(read_routed_setups(file, refused).size() + refused.size() == 1);
    return refused.empty() ? std::string("no error") : refused.front();
  };
  CHECK(setups("a,4,1024,4096,8,2,8,8,32000,32,4096,2,A100,8,8,,4") == "no error");
  CHECK(setups("a,0,1024,4096,8,2,8,8,32000,32,4096,2,A100,8,8,,4").find("column 'layers'") != std::string::npos);
  CHECK(setups("a,1e9,1024,4096,8,2,8,8,32000,32,4096,2,A100,8,8,,4").find("'layers': found '1e9'") !=
        std::string::npos);
  CHECK(setups("a,400000,1024,4096,8,2,8,8,32000,32,4096,2,A100,8,8,,4").find("allowed are 100000 together") !=
        std::string::npos);
  CHECK(setups("a,4,1000,4096,8,2,16,8,32000,32,4096,2,A100,8,8,,4").find("a width of 1000 for 16 heads") !=
        std::string::npos);
  CHECK(setups("a,4,1024,4096,8,2,8,8,32000,33,4096,2,A100,8,8,,4").find("found 33 sequences") != std::string::npos);
  CHECK(setups("a,4,1024,4096,6,2,8,8,32000,32,4096,2,A100,8,8,,4").find("does not divide the model's 6 experts") !=
        std::string::npos);
  CHECK(setups("a,4,1024,4096,8,9,8,8,32000,32,4096,2,A100,8,8,,4").find("moe_top_k: found 9") != std::string::npos);
}
