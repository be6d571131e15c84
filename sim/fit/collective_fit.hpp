// The constants of collectives (sim/cost/collectives/collective_constants.hpp), fitted to published measurements: to
// all of them, or without a cluster or an origin.
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
  /// Without the points of a cluster or an origin by this name.
  CollectiveFit without(const std::string& group) const;

 private:
  using Form = std::pair<CollectiveForm, bool>;  ///< over several nodes
  struct Fitted {
    FormConstants constants;
    std::vector<CollectivePoint> points;
  };
  CollectiveFit() = default;
  static Fitted fit(const Form& form, std::vector<CollectivePoint> points);

  std::map<Form, Fitted> forms_;
};

}  // namespace wt
