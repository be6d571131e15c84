#include "sim/cost/collectives/collective_points.hpp"

namespace wt {

TimedLoad timed(const CollectivePoint& p) {
  return {link_load(p.question()), p.group.nodes > 1, p.group.nodes > 1 ? p.machine.fabric : "", p.python, p.seconds};
}

}  // namespace wt
