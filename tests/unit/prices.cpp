// Prices of clusters, studies and offers: what their files say, and what is refused.
#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"
#include "configs/files/offer.hpp"
#include "configs/files/study.hpp"
#include "configs/files/study_prices.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

const std::string kQuote = "currency: USD, date: 2026-03-01, source: 'assumed: this test'";
const std::string kPrices = "{" + kQuote + ", gpu_hour: 2, spares: as_gpus}";
const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\ntokens: 20B\nmax_seq_len: 2048\n"
    "global_train_batch_size: 64\n";

PriceSpec prices_of(const std::string& map) {
  YamlMap file = YamlMap::from_text("prices: " + map, "p.yaml");
  return prices_from_yaml(file.map("prices"));
}

std::string refusal(const std::string& map) {
  return usage_error([&] { prices_of(map); });
}

/// What is said of prices with the quote of all tests.
std::string refused(const std::string& more) { return refusal("{" + kQuote + ", " + more + "}"); }

std::string offer_text(const std::string& more) {
  return "cluster: hgx-h100\ngpus: 64\nsource: 'assumed: this test'\n" + more;
}

/// What reading offers of these texts says; "no error" where they pass.
std::string offers_refused(const std::vector<std::string>& texts) {
  const TempDirectory folder;
  std::vector<std::string> files;
  for (const std::string& text : texts) {
    files.push_back((folder / (std::string(1, static_cast<char>('a' + files.size())) + ".yaml")).string());
    write_bytes(files.back(), text);
  }
  return usage_error([&] { read_offers(files); });
}

}  // namespace

TEST_CASE("amounts are numbers, ranges, or maps with a date and a source of their own") {
  const PriceSpec p = prices_of(
      "{" + kQuote +
      ", gpu_hour: [2, 3], spare_gpu_hour: {amount: 0.5, date: 2025-12-31, source: 'published: a list'}, "
      "power: {compute: 700W, communicate: [400W, 0.5kW], idle: 100W, host: 2kW, source: 'measured: a meter'}, "
      "pue: 1.2}");
  CHECK(p.currency == "USD");
  CHECK(p.gpu_hour->low == 2);
  CHECK(p.gpu_hour->high == 3);
  CHECK(p.gpu_hour->middle() == 2.5);
  CHECK(p.gpu_hour->date == "2026-03-01");
  CHECK(p.spare_gpu_hour->middle() == 0.5);
  CHECK(p.spare_gpu_hour->date == "2025-12-31");
  CHECK(to_string(p.spare_gpu_hour->evidence) == "published: a list");
  CHECK(p.power->communicate_W.high == 500);
  CHECK(p.power->host_W.low == 2000);
  CHECK(p.power->host_W.date == "2026-03-01");
  CHECK(to_string(p.power->host_W.evidence) == "measured: a meter");
  CHECK(p.pue->low == 1.2);
  CHECK_FALSE(p.storage_tb_month);
  CHECK_FALSE(p.carbon_kg_kwh);
}

TEST_CASE("spares cost as GPUs only where that is said") {
  CHECK(prices_of(kPrices).spare_gpu_hour->middle() == 2);
  CHECK(prices_of(kPrices).spares_as_gpus);
  CHECK_THAT(refused("gpu_hour: 2"), Contains("p.yaml:1: prices.gpu_hour") && Contains("spares: as_gpus"));
  CHECK_THAT(refused("gpu_hour: 2, spares: free"), Contains("found 'free', allowed as_gpus"));
  CHECK_THAT(refused("gpu_hour: 2, spares: as_gpus, spare_gpu_hour: 1"), Contains("needs one of the two"));
  CHECK_THAT(refused("spare_gpu_hour: 1"), Contains("without gpu_hour"));
  CHECK(prices_of("{" + kQuote + ", gpu_hour: 2, spare_gpu_hour: 0}").spare_gpu_hour->high == 0);
}

TEST_CASE("no amount without a date, a source and a currency") {
  CHECK_THAT(refusal("{currency: USD, source: 'assumed: a', egress_tb: 2}"),
             Contains("egress_tb: found without a date"));
  CHECK_THAT(refusal("{currency: USD, date: 2026-03-01, egress_tb: 2}"), Contains("found without a source"));
  CHECK_THAT(refusal("{date: 2026-03-01, source: 'assumed: a', egress_tb: 2}"), Contains("currency: missing"));
  CHECK_THAT(refusal("{currency: US dollars, date: 2026-03-01, source: 'assumed: a', egress_tb: 2}"),
             Contains("found 'US dollars', needs one word"));
  CHECK_THAT(refusal("{currency: USD, date: 2026-03-01, source: somebody, egress_tb: 2}"),
             Contains("found 'somebody'") && Contains("published: ..."));
  CHECK_THAT(refusal("{" + kQuote + "}"), Contains("prices of nothing"));
}

TEST_CASE("dates are of the calendar") {
  for (const char* wrong : {"2026-02-30", "2026-13-01", "2026-3-1", "01.03.2026", "2026-03-0x", "0000-01-01"})
    CHECK_THAT(refusal("{currency: USD, date: " + std::string(wrong) + ", source: 'assumed: a', egress_tb: 2}"),
               Contains("prices.date: found '" + std::string(wrong) + "', needs a date as 2026-03-01"));
  CHECK(refusal("{currency: USD, date: 2028-02-29, source: 'assumed: a', egress_tb: 2}") == "no error");
}

TEST_CASE("amounts that cannot be") {
  CHECK_THAT(refused("gpu_hour: 0, spares: as_gpus"), Contains("found 0, needs more than 0"));
  CHECK_THAT(refused("gpu_hour: nan, spares: as_gpus"), Contains("found 'nan', needs a number"));
  CHECK_THAT(refused("egress_tb: -1"), Contains("found -1, needs at least 0"));
  CHECK_THAT(refused("egress_tb: [3, 2]"), Contains("found [3, 2], needs the lower end first"));
  CHECK_THAT(refused("egress_tb: [1, 2, 3]"), Contains("two as [low, high]"));
  CHECK_THAT(refused("egress_tb: 2 USD"), Contains("found '2 USD', needs a number"));
  CHECK_THAT(refused("egress_tb: {amount: -2}"), Contains("prices.egress_tb.amount: found -2"));
  CHECK_THAT(refused("egress_tb: {price: 2}"), Contains("amount: missing"));
  const std::string power = "power: {compute: 700W, communicate: 400W, idle: 100W, host: 2kW}";
  CHECK_THAT(refused(power + ", pue: 0.9"), Contains("pue: found 0.9, needs at least 1"));
  CHECK_THAT(refused("egress_tb: 1, pue: 1.2"), Contains("without power"));
  CHECK_THAT(refused("power: {compute: 700, communicate: 400W, idle: 100W, host: 2kW}"),
             Contains("found '700', needs a power with one of the units W, kW"));
  CHECK_THAT(refused("power: {compute: 700W, communicate: 400W, idle: 100W}"), Contains("power.host: missing"));
  CHECK_THAT(refused("gpu_hours: 2"), Contains("did you mean 'gpu_hour'?"));
}

TEST_CASE("a study has its cluster's prices, or its own in place of all of them") {
  const TempDirectory folder;
  write_bytes(folder / "c.yaml", read_bytes(find_config("clusters", "hgx-h100")) + "prices: " + kPrices + "\n");
  std::string text = kStudy;
  CHECK_FALSE(study_from_text(text, "s.yaml").prices);
  text.replace(text.find("hgx-h100"), 8, (folder / "c.yaml").string());
  CHECK(study_from_text(text, "s.yaml").prices->gpu_hour->middle() == 2);
  const StudySpec own = study_from_text(text + "prices: {" + kQuote + ", egress_tb: 7}\nspare_nodes: 3\n", "s.yaml");
  CHECK_FALSE(own.prices->gpu_hour);
  CHECK(own.prices->egress_tb->middle() == 7);
  CHECK(own.spare_nodes == 3);
  CHECK_FALSE(study_from_text(text, "s.yaml").spare_nodes);
  CHECK_THAT(usage_error([&] { study_from_text(text + "spare_nodes: -1\n", "s.yaml"); }), Contains("spare_nodes"));
  // Written with every key, it keeps them.
  CHECK(study_from_text(study_yaml(own), "again.yaml").prices->egress_tb->middle() == 7);
}

TEST_CASE("an offer stands in for the study's cluster, GPUs, failures and prices") {
  const TempDirectory folder;
  write_bytes(folder / "harbor.yaml",
              offer_text("gpus: 200\nspare_nodes: 2\nfailures: bloom\nvalid_until: 2026-04-01\nprices: " + kPrices +
                         "\nstorage: {write: 9GB/s, read: 8GB/s, node_write: 2GB/s, node_read: 1GB/s, source: "
                         "'assumed: b'}\n")
                  .replace(offer_text("").find("gpus: 64\n"), 9, ""));
  const OfferSpec offer = read_offers({(folder / "harbor.yaml").string()})[0];
  CHECK(offer.name == "harbor");
  CHECK(offer.cluster.storage_node_read_Bps == 1e9);
  CHECK(to_string(offer.cluster.sources.at("storage")) == "assumed: b");
  const StudySpec study = study_from_text(kStudy, "s.yaml");
  const StudySpec on = study_on(study, offer);
  CHECK(on.name == "tiny on harbor");
  CHECK(on.gpus == 64);  // whole nodes among 200 GPUs that divide 64 sequences
  CHECK(on.cluster.nodes == 8);
  CHECK(on.spare_nodes == 2);
  CHECK(on.failures == "bloom");
  CHECK(on.prices->gpu_hour->middle() == 2);
  CHECK(on.tokens == study.tokens);
  for (const auto& [batch, gpus] : {std::pair{96, 96}, {100, 5}, {400, 200}, {7, 7}})
    CHECK(usable_gpus(offer.gpus, offer.cluster.gpus_per_node, batch) == gpus);
}

TEST_CASE("offers that cannot be compared") {
  const std::string priced = offer_text("prices: " + kPrices + "\n"), without = offer_text("");
  CHECK(offers_refused({priced, priced}) == "no error");
  const std::string said = offers_refused({priced, without, without});
  CHECK_THAT(said, Contains("offers without a price: ") && Contains("b.yaml") && Contains("c.yaml") &&
                       !Contains("a.yaml") && Contains("gpu_hour"));
  CHECK_THAT(offers_refused({offer_text("prices: {" + kQuote + ", egress_tb: 1}\n")}), Contains("without a price"));
  CHECK_THAT(offers_refused({"name: n\n" + priced, "name: n\n" + priced}), Contains("found the name 'n' in "));
  std::string euros = priced;
  euros.replace(euros.find("USD"), 3, "EUR");
  CHECK_THAT(offers_refused({priced, euros}), Contains("USD") && Contains("EUR") && Contains("one currency"));
  CHECK_THAT(offers_refused({priced + "valid_until: 2025-01-01\n"}), Contains("before the date of its price"));
  CHECK_THAT(offers_refused({priced + "nodes: 8\n"}), Contains("unknown key") && Contains("allowed here"));
  CHECK_THAT(offers_refused({"cluster: hgx-h100\ngpus: 12\nsource: 'assumed: a'\nprices: " + kPrices}),
             Contains("needs whole nodes of 8 GPUs"));
  CHECK_THAT(offers_refused({"cluster: local-2core\ngpus: 2\nsource: 'assumed: a'\nprices: " + kPrices}),
             Contains("needs a cluster of GPUs"));
  CHECK_THAT(offers_refused({"cluster: hgx-h100\ngpus: 8\nprices: " + kPrices}), Contains("source: missing"));
  CHECK_THAT(offers_refused({"cluster: no-such\ngpus: 8\nsource: 'assumed: a'\nprices: " + kPrices}),
             Contains("no-such"));
}

TEST_CASE("prices of the command line take the place of a study's, and leave what else it says") {
  const auto priced = [](const std::string& study, const GivenPrices& given) {
    return study_from_text(with_prices(study, given, "s.yaml"), "s.yaml").prices.value();
  };
  const PriceSpec alone = priced(kStudy, {"2.80", {"storage_tb_month=20"}});
  CHECK(alone.currency == "USD");
  CHECK((alone.gpu_hour->low == 2.8 && alone.gpu_hour->high == 2.8 && alone.spares_as_gpus));
  CHECK(alone.gpu_hour->evidence.kind == Evidence::assumed);
  CHECK(alone.storage_tb_month->middle() == 20);
  const std::string study = kStudy + "prices: {currency: EUR, date: 2026-03-01, source: 'assumed: this test', " +
                            "gpu_hour: 2, spare_gpu_hour: 1, egress_tb: 50}\n";
  const PriceSpec changed = priced(study, {"3.5 EUR", {}});
  CHECK((changed.currency == "EUR" && changed.gpu_hour->low == 3.5 && changed.spare_gpu_hour->low == 1));
  CHECK(changed.egress_tb->low == 50);
  const auto refused_as = [&](const GivenPrices& given) {
    return usage_error([&] { with_prices(study, given, "s.yaml"); });
  };
  CHECK_THAT(refused_as({"3.5 USD", {}}), Contains("other prices are in EUR"));
  CHECK_THAT(refused_as({"cheap", {}}), Contains("--gpu-hour: found 'cheap'"));
  CHECK_THAT(refused_as({"", {"egres_tb=2"}}), Contains("did you mean 'egress_tb'"));
  CHECK_THAT(refused_as({"", {"egress_tb"}}), Contains("needs KEY=AMOUNT"));
}
