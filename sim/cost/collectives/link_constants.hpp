// The constants behind prices of collectives. Time = latency x steps + 2 sqrt(fill x steps x transfer) + transfer: what
// a pipeline takes whose chunks have the best size (each of `fill` seconds of start-up), transfer = bytes over a share
// of the nominal rate of the narrowest resource. Three constants, each a base times a factor for the kind of link and
// one for the fabric by name, both kept near 1 by a prior: a fabric never seen has its link's, a link never seen the
// base's.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_question.hpp"

namespace wt {

/// A measured time as the fit sees it.
struct TimedLoad {
  LinkLoad load;
  bool many = false;
  std::string fabric;   ///< over several nodes, else empty
  bool python = false;  ///< timed from Python
  double seconds = 0;
};

class LinkConstants {
 public:
  struct Constants {
    double latency_s = 0, fill_s = 0;  ///< of one step
    double share = 0;                  ///< of the nominal rate
  };

  /// Throws Error{usage} without times. All on one node, or all over several. `near`: of almost the same times, where
  /// the search for these begins.
  explicit LinkConstants(const std::vector<TimedLoad>& times, const LinkConstants* near = nullptr);

  bool knows_link(const std::string& link) const { return links_.count(link) > 0; }
  /// Of a link and fabric; the base where a name was not seen.
  Constants constants(const std::string& link, const std::string& fabric) const;
  double seconds(const LinkLoad& load, const Constants& constants, bool python = false) const;
  /// Factors on `constants` that these further times of one machine ask for.
  Constants refined(const Constants& constants, const std::vector<TimedLoad>& times) const;
  double python_s() const { return python_s_; }

 private:
  using Logs = std::array<double, 3>;
  bool many_ = false;
  Logs base_{};
  std::map<std::string, Logs> links_, fabrics_;  ///< logarithms of factors on the base
  double python_s_ = 0;                          ///< host time of a call from Python
};

}  // namespace wt
