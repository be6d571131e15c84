// Fits the constants of collectives (sim/cost/collectives/collective_constants.hpp) to published measurements, to all
// or without those of a cluster or an origin.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/collectives/collective_constants.hpp"
#include "sim/cost/collectives/collective_points.hpp"

namespace wt {

class CollectiveFit {
 public:
  /// Takes half a second for the published table.
  explicit CollectiveFit(std::vector<CollectivePoint> points);
  CollectiveConstants constants() const;
  /// The fit without the points whose cluster or origin has this name.
  CollectiveFit without(const std::string& group) const;

 private:
  using Form = std::pair<CollectiveForm, bool>;  ///< bool: over several nodes
  struct Fitted {
    FormConstants constants;
    std::vector<CollectivePoint> points;
  };
  CollectiveFit() = default;
  static Fitted fit(const Form& form, std::vector<CollectivePoint> points);

  std::map<Form, Fitted> forms_;
};

}  // namespace wt
