#include "trainer/data/data_identity.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/text.hpp"
#include "trainer/data/mds_hash.hpp"

namespace wt {
namespace {

std::string digest(const std::string& text) { return mds_hash("xxh3_64", {std::as_bytes(std::span(text))}); }

std::string described(const StreamIdentity& stream) {
  return fmt::format("{}, {} bytes", counted(stream.samples, "sample"), stream.bytes);
}

}  // namespace

StreamIdentity identity_of_index(const std::string& name, const std::vector<MdsShard>& shards) {
  StreamIdentity out;
  out.name = name;
  std::string sizes;
  std::set<std::string> algorithms;
  if (!shards.empty())
    for (const auto& each : shards.front().raw.hashes)
      if (is_mds_hash(each.first)) algorithms.insert(each.first);
  for (const MdsShard& shard : shards) {
    out.samples += shard.samples;
    out.bytes += shard.raw.bytes;
    sizes += fmt::format("{} {}\n", shard.samples, shard.raw.bytes);
    std::erase_if(algorithms, [&](const std::string& each) { return !shard.raw.hashes.contains(each); });
  }
  out.sizes = digest(sizes);
  for (const std::string& algorithm : algorithms) {
    std::string all;
    for (const MdsShard& shard : shards) all += shard.raw.hashes.at(algorithm) + "\n";
    out.hashes[algorithm] = digest(all);
  }
  return out;
}

std::string difference(const StreamIdentity& was, const StreamIdentity& now) {
  const std::string of = now.name.empty() ? "" : fmt::format("stream '{}': ", now.name);
  if (was.samples != now.samples || was.bytes != now.bytes)
    return fmt::format("{}{}, it was {}", of, described(now), described(was));
  if (was.sizes != now.sizes) return fmt::format("{}{} in other shards than it was", of, described(now));
  const bool other_hash = std::ranges::any_of(was.hashes, [&](const auto& each) {
    const auto found = now.hashes.find(each.first);
    return found != now.hashes.end() && found->second != each.second;
  });
  const bool other_contents = !was.contents.empty() && !now.contents.empty() && was.contents != now.contents;
  if (other_hash || other_contents) return fmt::format("{}{} as it was, with other contents", of, described(now));
  return "";
}

std::string difference(const DataIdentity& was, const DataIdentity& now) {
  if (was.empty() || now.empty()) return "";
  if (was.size() != now.size())
    return fmt::format("{}, it was {}", counted(static_cast<std::int64_t>(now.size()), "stream"),
                       counted(static_cast<std::int64_t>(was.size()), "stream"));
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (was[i].name != now[i].name)
      return fmt::format("stream '{}' in the place of stream '{}'", now[i].name, was[i].name);
    if (const std::string wrong = difference(was[i], now[i]); !wrong.empty()) return wrong;
  }
  return "";
}

WT_TO_JSON(StreamIdentity, name, samples, bytes, sizes, hashes)

nlohmann::json to_json(const DataIdentity& identity) {
  nlohmann::json out = nlohmann::json::array();
  for (const StreamIdentity& stream : identity) {
    nlohmann::json entry = stream;
    if (!stream.contents.empty()) entry["contents"] = stream.contents;
    out.push_back(std::move(entry));
  }
  return out;
}

DataIdentity data_identity_from_json(const nlohmann::json& document, const std::string& origin) try {
  DataIdentity out;
  for (const nlohmann::json& entry : document)
    out.push_back({entry.at("name"), entry.at("samples"), entry.at("bytes"), entry.at("sizes"), entry.at("hashes"),
                   entry.value("contents", "")});
  return out;
} catch (const nlohmann::json::exception& e) {
  throw_usage(
      "{}: data: found what no sampler wrote ({}), allowed is a list of streams with name, samples, bytes, sizes and "
      "hashes; use a state that a sampler wrote",
      origin, e.what());
}

}  // namespace wt
