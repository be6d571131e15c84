// What stands behind `windtunnel validate routing`: rows are simulated as a user would, even loads are the balanced
// step, a hot rank stretches it, rows say nothing of one another, and what cannot be known is not predicted.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "sim/validate/judge_routing.hpp"
#include "sim/validate/judge_runs.hpp"
#include "sim/validate/ratios.hpp"
#include "sim/validate/routed_case.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;

namespace {

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
  s.run.framework = "LAER-MoE";
  s.run.precision = precision_recipe("amp_bf16", "test");
  s.run.gpu = "A100-80G-SXM";
  s.run.gpus = s.run.dp = s.run.shard_group = 8;
  s.run.ep = 4;
  s.run.zero_stage = 3;
  s.run.recompute = Recompute::block;
  s.run.seq = 4096;
  s.run.microbatch = s.run.accumulation = 2;
  s.run.global_batch = 32;
  s.loads_dataset = "books";
  return s;
}

using ShareOfRanks = std::vector<double>;
const ShareOfRanks kEven = {1, 1, 1, 1}, kSpread = {1.2, 0.8, 1.1, 0.9}, kHot = {2, 0.8, 0.6, 0.6},
                   kHotter = {2.2, 0.6, 0.6, 0.6};

RoutedContext context() {
  RoutedContext c;
  for (const char* name : {"small", "other", "wider"}) c.setups[name] = setup(name);
  c.setups["many experts"] = setup("many experts", 16);
  for (const char* name : {"small", "wider"}) {
    c.loads[{name, "spread"}] = {{kSpread, kEven}};
    c.loads[{name, "hot"}] = {{kHot, kHotter}, {kHotter, kHot}};
  }
  return c;
}

std::vector<PlacedStep> steps() {
  std::vector<PlacedStep> rows;
  for (const char* model : {"small", "wider"})
    for (const char* dataset : {"books", "code"})
      for (const char* method : {"spread", "hot"})
        rows.push_back({static_cast<std::int64_t>(rows.size()) + 2, dataset, method, model, 0, 1});
  return rows;
}

std::vector<Judged> judged(const std::vector<PlacedStep>& rows, const RoutedContext& c) {
  return judge_routing(rows, c, test::published());
}

using Words = std::vector<std::string>;

PlacedStep asked(const std::string& method, const std::string& model) { return {2, "books", method, model, 0, 1}; }

PlacedStep variant(const std::string& method, const std::string& base, std::int64_t experts, std::int64_t top_k) {
  PlacedStep row = asked(method, "variant of " + base);
  row.base = base, row.experts = experts, row.top_k = top_k;
  return row;
}

/// Of a row of the model "small", with these loads.
Judged judged_under(const RankLoads& loads, const RoutedSetup& s = setup("small")) {
  RoutedContext c;
  c.setups["small"] = s;
  c.loads[{"small", "placed"}] = loads;
  return judged({asked("placed", "small")}, c).at(0);
}
double seconds_under(const RankLoads& loads) { return judged_under(loads).forecast.value.value(); }

const std::string kSetupHeader =
    "model_name,layers,hidden,ffn,experts,top_k,heads,kv_heads,vocabulary,sequences,sequence_tokens,microbatches,gpu,"
    "gpus,gpus_per_node,interconnect,expert_parallel,loads_dataset,loads_aux_loss,source\n";
const std::string kSteps =
    "dataset,method,model_name,aux_loss,avg_time_ms,std_time_ms,matched_iterations,total_iterations\n";

}  // namespace

TEST_CASE("even loads take what a simulation of the same run file takes") {
  RunRow run = setup("small").run;
  run.name = "small", run.group = run_group(run), run.routing = RunRow::Routing::balanced;
  const RunFiles files = run_files(run, read_stack("laer"));
  const RunForecast step = forecast(files, test::stack_cost(files.cluster, "laer"));
  const Judged even = judged_under({{kEven}});
  for (const Forecast& each : {even.forecast, even.baseline}) {
    CHECK(*each.value == Approx(step.step_s).epsilon(1e-9));
    CHECK(each.low < 0.9 * step.step_s);  // by other sources' errors
    CHECK(each.high > 1.1 * step.step_s);
  }
  CHECK(even.forecast.low < 0.95 * step.step_s);
  CHECK(even.forecast.high > 1.05 * step.step_s);
  CHECK(even.forecast.evidence == only(Evidence::derived));  // no published step of the stack
}

TEST_CASE("a hot rank stretches the step, iterations are averaged, and layers repeat those recorded") {
  const double even = seconds_under({{kEven}}), hot = seconds_under({{kHot}});
  CHECK(hot > 1.1 * even);
  CHECK(hot < 2 * even);  // attention and gathers stay
  CHECK(seconds_under({{kHotter}}) > hot);
  CHECK(seconds_under({{kEven, kHot}}) == Approx((even + hot) / 2));
  const double mixed = seconds_under({{kEven}, {kHot}});
  CHECK(mixed == Approx(seconds_under({{kEven}, {kHot}, {kEven}, {kHot}})));  // 4 layers
  CHECK(mixed > even);
  CHECK(mixed < hot);
  RoutedSetup alone = setup("small");
  alone.run.ep = 1;  // experts that no other rank holds depend on no rank's load
  const Judged j = judged_under({{kHot}}, alone);
  CHECK(*j.forecast.value == Approx(*j.baseline.value));
}

TEST_CASE("rows say nothing of one another") {
  const RoutedContext c = context();
  std::vector<PlacedStep> rows = steps();
  const std::vector<Judged> before = judged(rows, c);
  for (std::size_t i = 1; i < rows.size(); ++i) rows[i].seconds *= 10;
  const std::vector<Judged> spoiled = judged(rows, c), alone = judged({rows[0]}, c);
  for (const std::vector<Judged>* with : {&spoiled, &alone}) {
    CHECK(*with->at(0).forecast.value == *before[0].forecast.value);
    CHECK(with->at(0).forecast.low == before[0].forecast.low);
    CHECK(with->at(0).forecast.high == before[0].forecast.high);
    CHECK(*with->at(0).baseline.value == *before[0].baseline.value);
  }
  const std::vector<Ratio> pairs = ratios(before);
  REQUIRE(pairs.size() == 4);
  for (const Ratio& r : pairs) CHECK(r.baseline == Approx(1));
}

TEST_CASE("rank totals are spread evenly over a rank's experts and the sources of its group") {
  ModelSpec model = setup("small").run.model;
  const auto routing = rank_total_routing(model, {2, 4096, 4096}, 4, {{kSpread, {1.3, 1.1, 1, 0.6, 0.9, 0.7, 1.4, 1}}});
  const double even = 4096 * 2 / 8.;
  const std::vector<double> first = routing->counts(0, 0, 3, 2), second = routing->counts(1, 1, 0, 6);
  REQUIRE(first.size() == 8);
  CHECK(first[0] == Approx(1.2 * even));
  CHECK(first[1] == first[0]);
  CHECK(first[7] == Approx(0.9 * even));
  CHECK(second[0] == Approx(0.9 * even));  // rank 4, the first of the second group
  CHECK(second[5] == Approx(1.4 * even));
  CHECK(routing->counts(0, 0, 0, 6) == first);  // four ranks were recorded
  CHECK(routing->same_in_every_microbatch());
  CHECK(rank_total_routing(model, {1, 8, 8}, 1, {{kHot}})->counts(0, 0, 0, 0) == std::vector<double>(8, 2.0));
  for (const RankLoads& none : {RankLoads{}, RankLoads{{}}, RankLoads{{{}}}})
    CHECK(test::usage_error([&] {
            rank_total_routing(model, {1, 8, 8}, 4, none);
          }).find("without loads") != std::string::npos);
  CHECK(test::usage_error([&] {
          rank_total_routing(model, {1, 8, 8}, 3, {{kHot}});
        }).find("8 experts over 3 ranks") != std::string::npos);
}

TEST_CASE("what was assumed of loads is said, and what cannot be known is a reason") {
  const RoutedContext c = context();
  std::vector<PlacedStep> rows = steps();
  rows.push_back({10, "books", "hot", "other", 0, 1});
  rows.push_back({11, "books", "hot", "many experts", 0, 1});
  rows.push_back({12, "books", "no such", "small", 0, 1});
  rows.push_back({13, "books", "hot", "no such", 0, 1});
  rows.push_back({14, "books", "hot", "small", 0.01, 1});
  const std::vector<Judged> all = judged(rows, c);
  CHECK(all[0].regime == "loads recorded");
  CHECK(all[0].forecast.evidence == only(Evidence::derived));
  CHECK(all[0].assumed.empty());
  CHECK(all[2].assumed == Words{"loads as on books with a balancing loss of 0"});
  CHECK(all[8].assumed == Words{"loads of hot on small"});
  CHECK(all[2].regime == "loads assumed: recorded on another data set or loss");
  CHECK(all[8].regime == "loads assumed: recorded on another model");
  CHECK(all[8].forecast.value.has_value());
  CHECK(all[8].forecast.evidence[static_cast<std::size_t>(Evidence::assumed)] > 0.1);
  CHECK(all[9].regime == "loads assumed: recorded for other experts or ranks");
  CHECK(all[9].assumed == Words{"loads of hot on small with 8 experts, top 2, expert groups of 4"});
  CHECK(all[10].forecast.reason ==
        "no rank loads of method 'no such' of any model, and its layout is not known; recorded are hot, spread");
  CHECK(all[11].forecast.reason.find("no shape and layout of model 'no such'") == 0);
  CHECK(all[12].regime == all[2].regime);

  RoutedContext unmeasured = c;
  unmeasured.setups["small"].run.gpu = "Imaginary X1";
  CHECK(judged(rows, unmeasured)[0].forecast.reason == "no data sheet of 'Imaginary X1'");
}

TEST_CASE("names are compared by letters and digits, and methods by the artifact's other names") {
  RoutedContext c;
  c.setups["mixtral-8x7b-e8k2"] = setup("mixtral-8x7b-e8k2");
  for (const char* method : {"FSDP", "FLEX", "LAER"}) c.loads[{"mixtral-8x7b-e8k2", method}] = {{kSpread}};
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
  c.loads[{"mixtral-8x7b-e8k2", "FlexMoE"}] = {{kHot}};  // its own name comes before another one of it
  CHECK(routed_case(asked("FlexMoE", "mixtral-8x7b-e8k2"), c).loads == RankLoads{{kHot}});
}

TEST_CASE("loads of other experts or ranks are the nearest recorded of the method, no more than possible") {
  RoutedContext c;
  c.setups["few"] = setup("few", 8);
  c.setups["more"] = setup("more", 32);
  c.loads[{"few", "hot"}] = {{{3.0, 0.5, 0.3, 0.2}, kHot}};
  c.loads[{"more", "hot"}] = {{kHotter}};
  c.setups["asked"] = setup("asked", 24);
  CHECK(routed_case(asked("hot", "asked"), c).recording.first == "more");
  c.setups["asked"] = setup("asked", 12);
  CHECK(routed_case(asked("hot", "asked"), c).recording.first == "few");
  CHECK(routed_case(asked("hot", "asked"), c).basis == RoutedBasis::other_experts);
  // Two groups of ranks, each with four experts: a rank cannot have more than all rows, twice the mean.
  c.setups["asked"] = setup("asked", 8);
  c.setups["asked"].run.ep = 2;
  CHECK(routed_case(asked("hot", "asked"), c).loads == RankLoads{{{2.0, 0.5, 0.3, 0.2}, kHot}});
  // One expert a rank, both choices of a token go to different ones: at most half of its rows are one rank's.
  c.setups["asked"] = setup("asked", 4);
  CHECK(routed_case(asked("hot", "asked"), c).loads == RankLoads{{{2.0, 0.5, 0.3, 0.2}, kHot}});
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
  for (const char* name : {"base-e8k2", "base-e16k4"}) {
    c.setups[name].base = "base";
    c.loads[{name, "hot"}] = {{kHot}};
  }

  const RoutedCase fine = routed_case(variant("hot", "Base", 32, 8), c);
  CHECK(fine.basis == RoutedBasis::other_shape);
  CHECK(fine.setup.run.model.experts == 32);
  CHECK(fine.setup.run.model.top_k == 8);
  CHECK(fine.setup.run.model.ffn == 1024);  // experts cut in two again: a token passes as much width
  CHECK(fine.setup.run.gpus_per_node == 4);
  REQUIRE(fine.assumed.size() == 3);
  CHECK(fine.assumed[0] == "shape of base-e16k4 with 32 experts of width 1024, top 8");
  CHECK(fine.assumed[1].find("layout of base-e16k4: 8 x A100-80G-SXM, expert groups of 4") == 0);
  CHECK(fine.assumed[2] == "loads of hot on base-e16k4 with 16 experts, top 4, expert groups of 4");

  const RoutedCase more = routed_case(variant("hot", "base", 10, 2), c);  // only one of the two grows: whole experts
  CHECK(more.setup.run.model.ffn == 4096);
  CHECK(more.setup.run.ep == 2);  // ranks share 10 experts evenly
  CHECK(routed_case(asked("hot", "base"), c).setup.run.model.experts == 8);

  ModelSpec dense = setup("dense").run.model, known = dense;
  dense.name = "dense-7b", dense.experts = dense.top_k = 0;
  known.name = "known", known.layers = 6;
  c.models = {dense, known};
  CHECK(routed_case(asked("hot", "known"), c).setup.run.model.layers == 6);
  CHECK(routed_case(variant("hot", "known", 8, 2), c).assumed[0] == "shape of known");
  CHECK(routed_case(variant("hot", "dense-7b", 4, 1), c).assumed[0] ==
        "shape of dense-7b with 4 experts of width 4096, top 1");
  RoutedSetup beside = setup("far", 64);
  beside.beside = true;
  c.setups["far"] = beside;
  CHECK(routed_case(asked("hot", "known"), c).assumed[1].find("layout of far: ") == 0);  // of the file's own cluster

  for (const char* name : {"dense-7b", "base-e32k8", "e8k2", "other", ""}) {
    INFO(name);
    CHECK(routed_case(asked("hot", name), c).unknown == "no shape");
  }
  for (const PlacedStep& row : {variant("hot", "base", 2, 4), variant("hot", "other", 8, 2)})
    CHECK(routed_case(row, c).unknown == "no shape");
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

TEST_CASE("of rank loads the settled iterations count") {
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
  const RankLoads& ranks = loads.at({"a", "m"});
  REQUIRE(ranks.size() == 2);
  REQUIRE(ranks[0].size() == kSettled);
  CHECK(ranks[0][0] == ShareOfRanks{1, 1, 2, 0});
  CHECK(ranks[1][4][2] == Approx(4 * 6 / 9.));
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
  CHECK(c.loads.at({"mine", "hot"}) == RankLoads{{{1.5, 0.5}}});
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
    const auto all = judged(rows, context());
    CHECK((all[0].forecast.value && all[2].forecast.value));
    CHECK(all[1].forecast.reason == rows[1].unusable);
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
