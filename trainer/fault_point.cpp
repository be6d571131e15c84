#include "trainer/fault_point.hpp"

#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

std::optional<FaultPoint> armed;

}  // namespace

FaultPoint FaultPoint::parse(const std::string& text) {
  FaultPoint fault;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals), value = equals == std::string::npos ? "" : part.substr(equals + 1);
    try {
      if (key == "rank") fault.rank = std::stoll(value);
      else if (key == "step") fault.step = std::stoll(value);
      else if (key == "at") fault.place = value;
      else if (key == "after") fault.after = std::stod(value);
      else throw std::invalid_argument(key);
    } catch (const std::exception&) {
      throw_error(Code::usage, "fault '{}': found '{}', needs rank=N,step=N,at=PLACE[,after=SHARE]", text, part);
    }
  }
  if (fault.rank < 0 || fault.step < 0 || fault.place.empty())
    throw_error(Code::usage, "fault '{}': needs rank=N,step=N,at=PLACE[,after=SHARE]", text);
  return fault;
}

std::string FaultPoint::text() const { return fmt::format("rank={},step={},at={},after={}", rank, step, place, after); }

void arm_fault(const FaultPoint& fault, std::int64_t rank) {
  if (fault.rank == rank) armed = fault;
}

void pass_fault_point(std::int64_t step, const std::string& place) {
  if (armed && armed->step == step && armed->place == place) die_now();
}

std::optional<double> checkpoint_fault(std::int64_t step) {
  if (armed && armed->step == step && armed->place == "checkpoint") return armed->after;
  return std::nullopt;
}

void die_now() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace wt
