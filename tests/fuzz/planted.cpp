#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "configs/base/error.hpp"
#include "tests/fuzz/door.hpp"

namespace wt::fuzz {

std::vector<Door> planted_doors() {
  std::vector<Door> doors;
  // Each takes its seed, and fails at what a mutation makes of it.
  const auto add = [&](const char* name, void (*fail)(const std::string& input)) {
    doors.push_back({name, {"12"}, [fail](const std::string& input, const auto&) {
                       if (input != "12") fail(input);
                     }});
  };
  add("throws", [](const std::string& input) { (void)std::stoi(input + "99999999999"); });
  add("says_nothing", [](const std::string&) { throw Error(Code::usage, ""); });
  add("of_other_code", [](const std::string&) { throw Error(Code::runtime, "a disk"); });
  add("aborts", [](const std::string&) { std::abort(); });
  add("ends", [](const std::string&) { std::_Exit(3); });
  add("takes_memory", [](const std::string&) {
    std::vector<std::string> taken;
    for (int i = 0; i < 64; ++i) taken.emplace_back(std::size_t{1} << 26, 'x');
  });
  add("takes_time", [](const std::string&) {
    for (std::atomic<unsigned> turns = 0;; ++turns) {
    }
  });
  add("waits", [](const std::string&) { pause(); });
  doors.push_back({"refuses_its_seed", {"12"}, [](const std::string& input, const auto&) {
                     if (input == "12") throw Error(Code::usage, "12 is refused");
                   }});
  return doors;
}

}  // namespace wt::fuzz
