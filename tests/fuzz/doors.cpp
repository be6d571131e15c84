#include "tests/fuzz/door.hpp"

namespace wt::fuzz {

std::vector<Door> all_doors() {
  std::vector<Door> out;
  for (auto&& some : {spec_doors(), recipe_doors(), measurement_doors(), data_doors(), record_doors()})
    out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace wt::fuzz
