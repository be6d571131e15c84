#include "bench/health/links.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bench/health/outliers.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

using PairKey = std::tuple<std::string, std::string, std::string>;  // rail, a, b

PairKey key_of(const LinkObservation& link) {
  const auto [a, b] = std::minmax(link.a, link.b);
  return {link.rail, a, b};
}

const std::string& partner(const JudgedPair& pair, const std::string& node) { return pair.a == node ? pair.b : pair.a; }

LinkFinding finding(LinkFinding::Kind kind, const std::string& node, const std::string& other,
                    const std::vector<JudgedPair>& evidence) {
  LinkFinding out{.kind = kind,
                  .node = node,
                  .other = other,
                  .rail = evidence.front().rail,
                  .slowdown = evidence.front().slowdown,
                  .p = 0,
                  .pairs = evidence};
  for (const JudgedPair& pair : evidence)
    out.slowdown = std::min(out.slowdown, pair.slowdown), out.p = std::max(out.p, pair.p);
  return out;
}

void solve_rail(const std::vector<JudgedPair>& pairs, std::vector<LinkFinding>& out) {
  using Kind = LinkFinding::Kind;
  std::set<std::string> cleared;
  std::map<std::string, std::vector<JudgedPair>> slow_of;
  std::vector<JudgedPair> slow;
  for (const JudgedPair& pair : pairs) {
    if (pair.slow) slow.push_back(pair);
    for (const std::string& node : {pair.a, pair.b})
      if (pair.slow)
        slow_of[node].push_back(pair);
      else
        cleared.insert(node);
  }
  // Requires two pairs: a single pair on a rail cannot distinguish the rail from its nodes.
  if (slow.size() > 1 && 2 * slow.size() > pairs.size()) {
    out.push_back(finding(Kind::rail, "", "", slow));
    return;
  }
  // Certain: for a slow pair whose other end is cleared, the remaining node is the cause. A single such pair leaves a
  // doubt, because its cable explains it as well.
  std::set<std::string> guilty;
  for (const auto& [node, own] : slow_of) {
    const auto fast = std::ranges::count_if(
        own, [&, &of = node](const JudgedPair& pair) { return cleared.count(partner(pair, of)) > 0; });
    if (cleared.count(node) || own.size() < 2 || fast == 0) continue;
    guilty.insert(node);
    out.push_back(finding(Kind::node, node, "", own));
    out.back().fast_partners = static_cast<std::size_t>(fast);
  }
  for (const JudgedPair& pair : slow) {
    if (guilty.count(pair.a) || guilty.count(pair.b)) continue;
    const bool a = cleared.count(pair.a) > 0, b = cleared.count(pair.b) > 0;
    if (a && b)
      out.push_back(finding(Kind::cable, pair.a, pair.b, {pair}));
    else if (a || b)
      out.push_back(finding(Kind::ambiguous, a ? pair.b : pair.a, "", {pair}));
    else
      out.push_back(finding(Kind::ambiguous, pair.a, pair.b, {pair}));
  }
}

}  // namespace

std::vector<JudgedPair> judge_pairs(const std::vector<LinkObservation>& links, double usual_spread, double most_p,
                                    double floor) {
  std::map<std::int64_t, std::map<PairKey, std::vector<double>>> groups;  // by payload; repeated pairs are merged
  for (const LinkObservation& link : links) {
    auto& seconds = groups[link.bytes][key_of(link)];
    seconds.insert(seconds.end(), link.seconds.begin(), link.seconds.end());
  }
  std::map<PairKey, std::vector<JudgedPair>> payloads;
  for (const auto& [bytes, members] : groups) {
    std::vector<double> times;
    std::vector<PairKey> keys;
    for (const auto& [key, seconds] : members) {
      if (seconds.empty()) continue;
      keys.push_back(key);
      times.push_back(median(seconds));
    }
    const std::vector<Deviation> found = deviations(times, usual_spread);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto& [rail, a, b] = keys[i];
      payloads[keys[i]].push_back(
          {.a = a, .b = b, .rail = rail, .bytes = bytes, .slowdown = found[i].slowdown, .p = found[i].p});
    }
  }
  std::vector<JudgedPair> out;
  for (auto& [key, judged] : payloads) {
    JudgedPair worst = *std::ranges::min_element(judged, {}, &JudgedPair::p);
    worst.slow = worst.slowdown >= floor && worst.p < most_p;
    out.push_back(std::move(worst));
  }
  return out;
}

std::vector<LinkFinding> solve_pairs(const std::vector<JudgedPair>& pairs) {
  std::map<std::string, std::vector<JudgedPair>> rails;
  for (const JudgedPair& pair : pairs) rails[pair.rail].push_back(pair);
  std::vector<LinkFinding> out;
  for (const auto& [rail, members] : rails) solve_rail(members, out);
  return out;
}

}  // namespace wt
