#include "sim/cost/collectives/collective_points.hpp"

namespace wt {

TimedLoad timed(const CollectivePoint& p) {
  const bool many = p.group.nodes > 1;
  return {.load = link_load(p.question()),
          .form = form_of(p.kind),
          .many = many,
          .fabric = many ? p.machine.fabric : "",
          .python = p.python,
          .seconds = p.seconds};
}

}  // namespace wt
