#include "planner/placement/placement_search.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace wt::detail {
namespace {

constexpr double kSame = 1e-12;  // loads are about 1; smaller differences are rounding

/// Loads per rank and scenario during a search.
class Loads {
 public:
  Loads(const PackProblem& p) : p_(p), load_(static_cast<std::size_t>(p.ranks * p.scenarios), 0.0) {}
  void add(int item, int rank, double sign = 1) {
    for (int s = 0; s < p_.scenarios; ++s) at(rank, s) += sign * p_.at(item, s);
  }
  double& at(int rank, int s) { return load_[static_cast<std::size_t>(rank * p_.scenarios + s)]; }
  /// Load of a rank in its worst scenario, with item `in` added and `out` removed (-1 = none).
  double worst(int rank, int in = -1, int out = -1) {
    double most = 0;
    for (int s = 0; s < p_.scenarios; ++s)
      most = std::max(most, at(rank, s) + (in < 0 ? 0 : p_.at(in, s)) - (out < 0 ? 0 : p_.at(out, s)));
    return most;
  }

 private:
  const PackProblem& p_;
  std::vector<double> load_;
};

/// Items by decreasing weight in their worst scenario; equal ones by index.
std::vector<int> by_weight(const PackProblem& p) {
  std::vector<double> key(static_cast<std::size_t>(p.items()), 0.0);
  for (int i = 0; i < p.items(); ++i)
    for (int s = 0; s < p.scenarios; ++s)
      key[static_cast<std::size_t>(i)] = std::max(key[static_cast<std::size_t>(i)], p.at(i, s));
  std::vector<int> order(key.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int a, int b) { return key[static_cast<std::size_t>(a)] > key[static_cast<std::size_t>(b)]; });
  return order;
}

/// Swaps an item of the fullest rank with one elsewhere while that lowers the larger load of the two. Ends, because
/// each swap lowers the sorted vector of rank loads.
void descend(const PackProblem& p, std::vector<int>& rank_of) {
  Loads loads(p);
  for (int i = 0; i < p.items(); ++i) loads.add(i, rank_of[static_cast<std::size_t>(i)]);
  while (true) {
    int full = 0;
    for (int g = 1; g < p.ranks; ++g)
      if (loads.worst(g) > loads.worst(full)) full = g;
    double best = loads.worst(full) - kSame;
    int out = -1, in = -1;
    for (int i = 0; i < p.items(); ++i) {
      if (rank_of[static_cast<std::size_t>(i)] != full) continue;
      for (int j = 0; j < p.items(); ++j) {
        const int other = rank_of[static_cast<std::size_t>(j)];
        if (other == full) continue;
        const double after = std::max(loads.worst(full, j, i), loads.worst(other, i, j));
        if (after < best) best = after, out = i, in = j;
      }
    }
    if (out < 0) return;
    const int other = rank_of[static_cast<std::size_t>(in)];
    loads.add(out, full, -1), loads.add(in, full), loads.add(in, other, -1), loads.add(out, other);
    std::swap(rank_of[static_cast<std::size_t>(out)], rank_of[static_cast<std::size_t>(in)]);
  }
}

class Tree {
 public:
  Tree(const PackProblem& p, const Packing& incumbent, double bound, std::int64_t limit)
      : p_(p),
        order_(by_weight(p)),
        loads_(p),
        room_(static_cast<std::size_t>(p.ranks), p.room),
        open_(p.ranks),
        rank_of_(static_cast<std::size_t>(p.items()), -1),
        bound_(bound),
        limit_(limit) {
    proof_.best = incumbent;
    // smallest_[(i, s, m)]: sum of the m smallest of the items not yet placed at depth i.
    const int n = p.items();
    smallest_.resize(static_cast<std::size_t>((n + 1) * p.scenarios * (p.room + 1)), 0.0);
    rest_.resize(static_cast<std::size_t>((n + 1) * p.scenarios), 0.0);
    for (int i = 0; i < n; ++i)
      for (int s = 0; s < p.scenarios; ++s) {
        std::vector<double> left;
        for (int k = i; k < n; ++k) left.push_back(p.at(order_[static_cast<std::size_t>(k)], s));
        rest(i, s) = std::accumulate(left.begin(), left.end(), 0.0);
        std::ranges::sort(left);
        for (int m = 1; m <= p.room; ++m)
          smallest(i, s, m) = smallest(i, s, m - 1) +
                              (m <= static_cast<int>(left.size()) ? left[static_cast<std::size_t>(m - 1)] : 0.0);
      }
  }

  Proof search() {
    stopped_ = false;
    place(0);
    proof_.exhausted = !stopped_ || proof_.best.largest <= bound_ + kSame;
    return proof_;
  }

 private:
  double& smallest(int i, int s, int m) {
    return smallest_[static_cast<std::size_t>((i * p_.scenarios + s) * (p_.room + 1) + m)];
  }
  double& rest(int i, int s) { return rest_[static_cast<std::size_t>(i * p_.scenarios + s)]; }
  double target() const { return proof_.best.largest - kSame; }

  /// Whether the items left must exceed the target: ranks with room share them, and each gets at least the smallest.
  bool hopeless(int depth) {
    for (int s = 0; s < p_.scenarios; ++s) {
      double open_load = rest(depth, s);
      for (int g = 0; g < p_.ranks; ++g) {
        const int room = room_[static_cast<std::size_t>(g)];
        if (room == 0) continue;
        open_load += loads_.at(g, s);
        if (loads_.at(g, s) + smallest(depth, s, room) >= target()) return true;
      }
      if (open_load >= target() * open_) return true;
    }
    return false;
  }

  bool same_state(int a, int b) {
    if (room_[static_cast<std::size_t>(a)] != room_[static_cast<std::size_t>(b)]) return false;
    for (int s = 0; s < p_.scenarios; ++s)
      if (loads_.at(a, s) != loads_.at(b, s)) return false;
    return true;
  }

  void place(int depth) {
    if (stopped_) return;
    if (++proof_.nodes == limit_ && limit_ > 0) stopped_ = true;
    if (depth == p_.items()) {
      const double largest = largest_load(p_, rank_of_);
      if (largest < proof_.best.largest) proof_.best = {rank_of_, largest};
      if (proof_.best.largest <= bound_ + kSame) stopped_ = true;
      return;
    }
    if (hopeless(depth)) return;
    const int item = order_[static_cast<std::size_t>(depth)];
    std::vector<std::pair<double, int>> children;
    for (int g = 0; g < p_.ranks; ++g) {
      const int room = room_[static_cast<std::size_t>(g)];
      if (room == 0) continue;
      bool twin = false;  // ranks in the same state lead to the same packings
      for (int h = 0; h < g && !twin; ++h) twin = room_[static_cast<std::size_t>(h)] > 0 && same_state(g, h);
      if (twin) continue;
      double least = 0;
      for (int s = 0; s < p_.scenarios; ++s)
        least = std::max(least, loads_.at(g, s) + p_.at(item, s) + smallest(depth + 1, s, room - 1));
      if (least < target()) children.emplace_back(least, g);
    }
    std::ranges::sort(children);
    for (const auto& [least, g] : children) {
      if (least >= target()) break;  // the incumbent may have improved
      auto& room = room_[static_cast<std::size_t>(g)];
      rank_of_[static_cast<std::size_t>(item)] = g;
      std::vector<double> before;
      for (int s = 0; s < p_.scenarios; ++s) before.push_back(loads_.at(g, s));
      loads_.add(item, g);
      if (--room == 0) --open_;
      place(depth + 1);
      if (room++ == 0) ++open_;
      // Restored exactly, against rounding drift.
      for (int s = 0; s < p_.scenarios; ++s) loads_.at(g, s) = before[static_cast<std::size_t>(s)];
      if (stopped_) return;
    }
  }

  const PackProblem& p_;
  std::vector<int> order_;
  Loads loads_;
  std::vector<int> room_;
  int open_;
  std::vector<int> rank_of_;
  double bound_;
  std::int64_t limit_;
  std::vector<double> smallest_, rest_;
  Proof proof_;
  bool stopped_ = false;
};

}  // namespace

double largest_load(const PackProblem& p, const std::vector<int>& rank_of) {
  Loads loads(p);
  for (int i = 0; i < p.items(); ++i) loads.add(i, rank_of[static_cast<std::size_t>(i)]);
  double most = 0;
  for (int g = 0; g < p.ranks; ++g) most = std::max(most, loads.worst(g));
  return most;
}

double lower_bound(const PackProblem& p) {
  double bound = 1.0;  // the mean
  const int n = p.items();
  for (int s = 0; s < p.scenarios; ++s) {
    std::vector<double> w;
    for (int i = 0; i < n; ++i) w.push_back(p.at(i, s));
    std::ranges::sort(w, std::greater<>());
    // Some rank holds k + 1 of the first k * ranks + 1 items: at least the smallest of them, and its other items.
    for (int k = 0; k < p.room && k * p.ranks < n; ++k) {
      const auto last = w.begin() + k * p.ranks + 1;
      bound = std::max(bound, std::accumulate(last - (k + 1), last, 0.0) +
                                  std::accumulate(w.end() - (p.room - k - 1), w.end(), 0.0));
    }
    if (p.room == 2)
      for (int i = 0; i < p.ranks; ++i)
        bound = std::max(bound, w[static_cast<std::size_t>(i)] + w[static_cast<std::size_t>(n - 1 - i)]);
  }
  return bound;
}

Packing heuristic(const PackProblem& p, int kicks) {
  Loads loads(p);
  std::vector<int> room(static_cast<std::size_t>(p.ranks), p.room);
  Packing best;
  best.rank_of.resize(static_cast<std::size_t>(p.items()));
  for (int item : by_weight(p)) {
    int to = -1;
    for (int g = 0; g < p.ranks; ++g)
      if (room[static_cast<std::size_t>(g)] > 0 && (to < 0 || loads.worst(g, item) < loads.worst(to, item))) to = g;
    loads.add(item, to);
    --room[static_cast<std::size_t>(to)];
    best.rank_of[static_cast<std::size_t>(item)] = to;
  }
  descend(p, best.rank_of);
  best.largest = largest_load(p, best.rank_of);
  std::mt19937_64 engine(1);
  const double bound = lower_bound(p);
  for (int kick = 0; kick < kicks && best.largest > bound + kSame; ++kick) {
    std::vector<int> rank_of = best.rank_of;
    for (int swap = 0; swap < 3; ++swap)  // enough to leave the basin of pair swaps
      std::swap(rank_of[engine() % rank_of.size()], rank_of[engine() % rank_of.size()]);
    descend(p, rank_of);
    const double largest = largest_load(p, rank_of);
    if (largest <= best.largest) best = {rank_of, largest};
  }
  return best;
}

Proof branch_and_bound(const PackProblem& p, const Packing& incumbent, double bound, std::int64_t node_limit) {
  if (incumbent.largest <= bound + kSame) return {incumbent, true, 0};
  return Tree(p, incumbent, bound, node_limit).search();
}

}  // namespace wt::detail
