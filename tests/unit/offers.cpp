// Offers compared: verdicts, break-even prices, what is said of them, and one comparison from files to the end.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "planner/cli/compare_offers/offers_report.hpp"
#include "planner/offers/offers.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: balanced\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [1], microbatch: [1], shard_sizes: [8, 16], recompute: block}\n";

PriceSpec prices(double gpu_hour) {
  const auto amount = [](double value) {
    return PriceAmount{value, value, "2026-03-01", {Evidence::assumed, "this test"}};
  };
  PriceSpec p;
  p.currency = "USD";
  p.gpu_hour = amount(gpu_hour), p.spare_gpu_hour = amount(0);
  return p;
}

/// An offer with a plan of 100 hours on 10 GPUs, its step known within the factors given.
OfferRow row(const std::string& name, double gpu_hour, const std::string& gpu, double low = 1, double high = 1) {
  CostInput in;
  in.scenario.steps = 10000, in.scenario.step_s = 36, in.scenario.interval_steps = 100;
  in.step = {{.computing = 1, .communicating = 0}, 36 * low, 36 * high};
  in.runs = 400;

  in.gpus = 10;
  in.prices = prices(gpu_hour);
  OfferRow out;
  out.offer.name = name, out.offer.prices = in.prices, out.offer.gpus = 10;
  out.inputs.study.gpus = 10;
  out.inputs.study.cluster.gpu_name = gpu;
  out.plan.emplace();

  out.plan->cost = estimate_cost(in);
  return out;
}

OfferComparison judged(std::vector<OfferRow> rows) {
  OfferComparison out{.study = "s", .currency = "USD", .rows = std::move(rows), .cheapest = {}};
  judge_offers(out);
  return out;
}

OfferSpec offer(const std::string& name, double gpu_hour, const std::string& cluster = "hgx-h100") {
  OfferSpec out;
  out.name = name, out.file = name + ".yaml";
  out.cluster = read_cluster(cluster);
  out.gpus = 16;
  out.prices = prices(gpu_hour);
  return out;
}

}  // namespace

TEST_CASE("the cheapest, and how much dearer the others are") {
  const OfferComparison c = judged({row("b", 3, "A"), row("a", 2, "A"), row("d", 2.5, "B")});
  CHECK(c.cheapest == 1u);
  CHECK(c.rows[1].verdict == OfferVerdict::cheapest);
  CHECK(c.rows[0].verdict == OfferVerdict::dearer);
  CHECK(c.rows[0].dearer == Approx(0.5));
  CHECK(c.rows[2].dearer == Approx(0.25));
  CHECK(c.rows[0].break_even.value() == Approx(2));
  CHECK(c.rows[1].break_even.value() == Approx(2.5));  // as the next
  CHECK_THAT(offers_answer(c), Contains("Cheapest is a: 2.00k USD") && Contains("done in 4.2 days") &&
                                   Contains("b is 50.0 % dearer; d is 25.0 % dearer."));
}

TEST_CASE("as many of one GPU are told apart by price, other machines are a tie within the error of a ratio") {
  const OfferComparison alike = judged({row("a", 2, "A", 0.8, 1.25), row("b", 2.01, "A", 0.8, 1.25)});
  CHECK(alike.rows[1].verdict == OfferVerdict::dearer);
  CHECK(alike.rows[1].chance == 0);
  // log(ratio) is normal with a deviation of 0.12: 10 % of it lie beyond 1.2816 deviations.
  const auto other = [](double dearer) {
    return judged({row("a", 2, "A", 0.8, 1.25), row("b", 2 * dearer, "B", 0.8, 1.25)}).rows[1];
  };
  CHECK(other(1.05).chance == Approx(0.3422).margin(0.01));
  CHECK(other(1.12).verdict == OfferVerdict::tie);
  CHECK(other(1.15).verdict == OfferVerdict::tie);
  CHECK(other(1.18).verdict == OfferVerdict::dearer);
  const OfferComparison same = judged({row("a", 2, "A", 0.8, 1.25), row("b", 2, "A", 0.8, 1.25)});
  CHECK(same.rows[1].verdict == OfferVerdict::tie);
  CHECK_THAT(offers_answer(same), Contains("b is a tie with it (0.0 % dearer"));
}

TEST_CASE("a tie is a tie in every format") {
  const OfferComparison c = judged({row("a", 2, "A", 0.8, 1.25), row("b", 2.1, "B", 0.8, 1.25), row("c", 4, "A")});
  CHECK(c.tied == std::vector<std::size_t>{0, 1});
  CHECK(c.rows[0].verdict == OfferVerdict::tie);
  CHECK(c.rows[2].verdict == OfferVerdict::dearer);
  CHECK_THAT(offers_answer(c), Catch::StartsWith("A tie: a and b cannot be told apart."));
  const std::string table = text_table(offers_table(c), {.color = false});
  CHECK_THAT(table, Contains("tie, the least at P50") && Contains("tie (+5.0 %"));
  const nlohmann::json document = offers_json(c);
  CHECK(document["tie"] == nlohmann::json{"a", "b"});
  CHECK(document["offers"][0]["verdict"] == "tie");
  CHECK(document["offers"][1]["verdict"] == "tie");
  const Report report = offers_report(c);
  CHECK(report.status == Status::warn);
  CHECK_THAT(report.answer, Catch::StartsWith("A tie: a and b"));
  const OfferComparison clear = judged({row("a", 2, "A"), row("b", 3, "A")});
  CHECK(clear.tied.size() == 1);
  CHECK(offers_report(clear).status == Status::good);
  CHECK(offers_json(clear)["tie"].empty());
}

TEST_CASE("an offer of which not all GPUs are used is flagged, and the batch stands beside") {
  OfferRow part = row("part", 2, "A");
  part.offer.gpus = 12;
  OfferRow all = row("all", 3, "A");
  all.offer.gpus = 10;
  const Table table = offers_table(judged({part, all}));
  CHECK(table.columns[2].name == "batch");
  CHECK(table.rows[0][1].text == "10 of 12");
  CHECK(table.rows[0][1].status == Status::warn);
  CHECK(table.rows[1][1].text == "10");
}

TEST_CASE("offers without a plan have no part in it") {
  OfferRow none = row("none", 1, "A");
  none.plan.reset();
  none.misfit = "nothing fits";
  const OfferComparison c = judged({none, row("a", 2, "A")});
  CHECK(c.cheapest == 1u);
  CHECK_FALSE(c.rows[1].break_even);  // there is no other
  CHECK_THAT(offers_answer(c), Contains("none does not fit."));
  CHECK(offers_table(c).rows[0].back().text == "does not fit");
  CHECK_THAT(offers_notes(c)[0], Contains("No plan: nothing fits"));
  const OfferComparison nothing = judged({none});
  CHECK_FALSE(nothing.cheapest);
  CHECK(offers_answer(nothing) == "s fits on none of the offers.");
  CHECK(offers_json(nothing)["cheapest"].is_null());
}

TEST_CASE("a study on offers: planned again at the break-even price an offer costs what the cheapest does") {
  const StudySpec study = study_from_text(kStudy, "s.yaml");
  std::vector<OfferSpec> offers{offer("near", 2), offer("far", 3), offer("other", 2.5, "hgx-h200")};
  offers[2].spare_nodes = 1;
  const OfferComparison c = compare_offers(study, offers, false);
  REQUIRE(c.cheapest == 0u);
  CHECK(c.rows[1].dearer == Approx(0.5));
  CHECK(c.rows[1].break_even.value() == Approx(2));
  CHECK(c.rows[2].plan->runs.scenario.spares == 1);
  const double least = c.rows[0].plan->cost.money->p50;
  CHECK(least == Approx(2 * c.rows[0].plan->cost.gpu_hours.p50));
  offers[2].prices = prices(c.rows[2].break_even.value());
  const OfferComparison again = compare_offers(study, offers, false);
  CHECK(again.rows[2].plan->cost.money->p50 == Approx(least));

  const nlohmann::json document = offers_json(c);
  CHECK(document["schema"] == "windtunnel.offers/1");
  CHECK(document["cheapest"] == "near");
  CHECK(document["offers"][1]["verdict"] == "dearer");
  CHECK(document["offers"][2]["cost"]["prices"][0]["date"] == "2026-03-01");
  const std::string table = text_table(offers_table(c), {.color = false});
  CHECK_THAT(table, Contains("break-even [USD/GPU-h]") && Contains("50.0 % dearer"));
  CHECK_THAT(offers_notes(c)[1], Contains("3 USD a GPU-hour") && Contains("(2026-03-01, assumed: this test)") &&
                                     Contains("Not priced: stored checkpoints"));
}

TEST_CASE("an offer that cannot be read with the study is named before anything is planned") {
  std::vector<OfferSpec> offers{offer("near", 2), offer("odd", 2)};
  offers[1].failures = "no-such";
  CHECK_THAT(usage_error([&] { compare_offers(study_from_text(kStudy, "s.yaml"), offers, false); }),
             Contains("offer odd (odd.yaml): ") && Contains("no-such") && Contains("nothing was planned"));
}
