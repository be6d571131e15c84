#include "configs/files/offer.hpp"

#include <algorithm>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"
#include "configs/files/stack.hpp"

namespace wt {
namespace {

void read_storage_override(YamlMap storage, ClusterSpec& cluster) {
  read_storage_rates(storage, cluster);
  cluster.sources["storage"] = read_sources(storage);
  storage.finish();
}

void check_names(const std::vector<OfferSpec>& offers) {
  std::map<std::string, std::string> files;
  for (const OfferSpec& offer : offers)
    if (const auto [known, fresh] = files.emplace(offer.name, offer.file); !fresh)
      throw_usage("offers: found the name '{}' in {} and in {}; needs a name for each", offer.name, known->second,
                  offer.file);
}

void check_prices(const std::vector<OfferSpec>& offers) {
  std::string without;
  for (const OfferSpec& offer : offers)
    if (!offer.prices || !offer.prices->gpu_hour) without += (without.empty() ? "" : ", ") + offer.file;
  if (!without.empty())
    throw_usage(
        "offers without a price: {}; each needs prices with currency, gpu_hour, date and source "
        "(docs/compare-offers.md)",
        without);
  for (const OfferSpec& offer : offers)
    if (offer.prices->currency != offers[0].prices->currency)
      throw_usage("offers: found prices in {} ({}) and in {} ({}); needs one currency for all",
                  offers[0].prices->currency, offers[0].file, offer.prices->currency, offer.file);
}

}  // namespace

OfferSpec read_offer(const std::string& name_or_file) {
  const std::filesystem::path file = find_config("offers", name_or_file);
  YamlMap map = YamlMap::from_file(file);
  OfferSpec offer;
  offer.file = file.string();
  offer.name = map.text("name", map.file().stem().string());
  offer.cluster = cluster_of(map);
  if (offer.cluster.shared_cores())
    map.fail("cluster", "found {}, whose ranks share cores; needs a cluster of GPUs", offer.cluster.name);
  offer.gpus = map.integer("gpus", 1);
  const std::int64_t per_node = offer.cluster.gpus_per_node;
  if (offer.gpus > per_node && offer.gpus % per_node != 0)
    map.fail("gpus", "found {}, needs whole nodes of {} GPUs ({})", offer.gpus, per_node, offer.cluster.name);
  if (map.has("spare_nodes")) offer.spare_nodes = map.integer("spare_nodes", 0, kMostSpares);
  offer.failures = map.text("failures", "");
  if (map.has("storage")) read_storage_override(map.map("storage"), offer.cluster);
  if (map.has("prices")) offer.prices = prices_from_yaml(map.map("prices"));
  if (map.has("valid_until")) offer.valid_until = read_date(map, "valid_until");
  if (offer.prices && offer.prices->gpu_hour && !offer.valid_until.empty() &&
      offer.valid_until < offer.prices->gpu_hour->date)
    map.fail("valid_until", "found {}, before the date of its price, {}; needs a later day", offer.valid_until,
             offer.prices->gpu_hour->date);
  offer.source = read_source(map);
  map.finish();
  return offer;
}

std::vector<OfferSpec> read_offers(const std::vector<std::string>& names_or_files) {
  std::vector<OfferSpec> offers = mapped(names_or_files, read_offer);
  check_names(offers);
  check_prices(offers);
  return offers;
}

StudySpec study_on(const StudySpec& study, const OfferSpec& offer) {
  StudySpec out = study;
  out.name = study.name + " on " + offer.name;
  if (offer.cluster.gpu_name != study.cluster.gpu_name) out.profiles.clear();
  out.checkpoint.elsewhere = offer.cluster.name != study.cluster.name ||
                             offer.cluster.storage_write_Bps != study.cluster.storage_write_Bps ||
                             offer.cluster.storage_node_write_Bps != study.cluster.storage_node_write_Bps;
  if (out.stack.empty()) out.stack = kDefaultStack;  // the study is on shared cores, which need no stack
  out.cluster = offer.cluster;
  out.gpus = usable_gpus(offer.gpus, offer.cluster.gpus_per_node, study.global_batch);
  out.cluster.set_nodes(std::max<std::int64_t>(1, out.gpus / out.cluster.gpus_per_node));
  out.spare_nodes = offer.spare_nodes;
  if (!offer.failures.empty()) out.failures = offer.failures;
  out.prices = offer.prices;
  return out;
}

}  // namespace wt
