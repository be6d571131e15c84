#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "trainer/data/sampler.hpp"

namespace wt {
namespace {

constexpr const char* kStateKeys =
    "epoch, initial_physical_nodes, num_canonical_nodes, sample_in_epoch, shuffle_seed; of some data sets batch_world, "
    "data, mixes, waiting";

std::int64_t whole_number(const nlohmann::json& document, const std::string& origin, const char* key,
                          std::int64_t least) {
  const auto found = document.find(key);
  if (found == document.end())
    throw_usage("{}: found no key {}, allowed are exactly the keys {}; use a state that a sampler wrote", origin, key,
                kStateKeys);
  const bool fits =
      found->is_number_integer() &&
      !(found->is_number_unsigned() &&
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || found->get<std::int64_t>() < least)
    throw_usage(
        "{}: {}: found {}, allowed are whole numbers of at least {} below 2^63; use a state that a sampler wrote",
        origin, key, found->dump(), least);
  return found->get<std::int64_t>();
}

std::vector<std::vector<std::int64_t>> waiting_samples(const nlohmann::json& document, const std::string& origin) {
  std::vector<std::vector<std::int64_t>> out;
  const auto is_id = [](const nlohmann::json& id) { return id.is_number_unsigned(); };
  const auto is_sequence = [&](const nlohmann::json& each) {
    return each.is_array() && !each.empty() && std::ranges::all_of(each, is_id);
  };
  if (!document.is_array() || !std::ranges::all_of(document, is_sequence))
    throw_usage("{}: waiting: found {}, allowed is a list of lists of sample ids; use a state that a sampler wrote",
                origin, document.dump());
  for (const nlohmann::json& each : document) out.push_back(each.get<std::vector<std::int64_t>>());
  return out;
}

UsedMix used_mix(const nlohmann::json& document, const std::string& origin) {
  const std::string where = origin + ": mixes";
  if (!document.is_object() || document.size() != 3 || !document.contains("proportions") ||
      !document.at("proportions").is_array())
    throw_usage("{}: found {}, allowed are maps of at, epoch, proportions; use a state that a sampler wrote", where,
                document.dump());
  UsedMix out = {whole_number(document, where, "at", 0), whole_number(document, where, "epoch", 0), {}};
  for (const nlohmann::json& share : document.at("proportions")) {
    if (!share.is_number() || !(share.get<double>() >= 0))
      throw_usage("{}: found the proportion {}, allowed are numbers from 0; use a state that a sampler wrote", where,
                  share.dump());
    out.proportions.push_back(share.get<double>());
  }
  return out;
}

}  // namespace

nlohmann::json to_json(const SamplerState& state) {
  nlohmann::json out = {{"epoch", state.epoch},
                        {"sample_in_epoch", state.sample_in_epoch},
                        {"num_canonical_nodes", state.num_canonical_nodes},
                        {"shuffle_seed", state.shuffle_seed},
                        {"initial_physical_nodes", state.initial_physical_nodes}};
  for (const UsedMix& mix : state.mixes)
    out["mixes"].push_back({{"at", mix.at}, {"epoch", mix.epoch}, {"proportions", mix.proportions}});
  if (!state.waiting.empty()) out["waiting"] = state.waiting;
  if (!state.data.empty()) out["data"] = to_json(state.data);
  if (state.world != BatchWorld{})
    out["batch_world"] = {{"nodes", state.world.nodes}, {"ranks_per_node", state.world.ranks_per_node}};
  return out;
}

SamplerState sampler_state_from_json(const nlohmann::json& document, const std::string& origin) {
  const bool object = document.is_object();
  const std::size_t more = object ? document.count("mixes") + document.count("batch_world") +
                                        document.count("waiting") + document.count("data")
                                  : 0;
  if (!object || document.size() > 5 + more)
    throw_usage("{}: found {}, allowed is an object with exactly the keys {}; use a state that a sampler wrote", origin,
                object ? "more than five keys" : document.type_name(), kStateKeys);
  SamplerState state;
  state.epoch = whole_number(document, origin, "epoch", 0);
  state.sample_in_epoch = whole_number(document, origin, "sample_in_epoch", 0);
  state.num_canonical_nodes = whole_number(document, origin, "num_canonical_nodes", 1);
  state.shuffle_seed = static_cast<std::uint64_t>(whole_number(document, origin, "shuffle_seed", 0));
  state.initial_physical_nodes = whole_number(document, origin, "initial_physical_nodes", 1);
  if (document.contains("mixes")) {
    if (!document.at("mixes").is_array())
      throw_usage("{}: mixes: found {}, allowed is a list; use a state that a sampler wrote", origin,
                  document.at("mixes").dump());
    for (const nlohmann::json& mix : document.at("mixes")) state.mixes.push_back(used_mix(mix, origin));
  }
  if (document.contains("waiting")) state.waiting = waiting_samples(document.at("waiting"), origin);
  if (document.contains("data")) state.data = data_identity_from_json(document.at("data"), origin);
  if (document.contains("batch_world")) {
    const nlohmann::json& world = document.at("batch_world");
    const std::string where = origin + ": batch_world";
    if (!world.is_object() || world.size() != 2)
      throw_usage("{}: found {}, allowed is a map of nodes, ranks_per_node; use a state that a sampler wrote", where,
                  world.dump());
    state.world = {whole_number(world, where, "nodes", 1), whole_number(world, where, "ranks_per_node", 1)};
  }
  return state;
}

}  // namespace wt
