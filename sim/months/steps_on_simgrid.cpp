#include "sim/months/steps_on_simgrid.hpp"

#include <cmath>
#include <limits>

namespace wt::detail {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

class HostTime : public UptimeTime {
 public:
  HostTime(FailingHost& host, std::int64_t failure) : host_(host), begin_s_(host.now()) {
    host_.start(failure < kNever ? seconds(failure) : std::numeric_limits<double>::infinity());
  }
  ~HostTime() override { host_.stop(); }
  HostTime(const HostTime&) = delete;
  HostTime& operator=(const HostTime&) = delete;

  std::int64_t now() const override { return std::llround((host_.now() - begin_s_) * 1e9); }
  bool pass(std::int64_t span) override { return host_.work(seconds(span)); }
  void start_persist(std::int64_t span) override { host_.start_behind(seconds(span)); }
  bool wait_persisted() override { return host_.wait_behind(); }
  bool persisted() const override { return host_.behind_done(); }

 private:
  FailingHost& host_;
  double begin_s_;
};

}  // namespace

RunExecution steps_on(FailingHost& host) {
  return {[&host](const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health) {
            HostTime time(host, events.failure);
            return step_uptime(clock, from, first, events, health, time);
          },
          [&host](std::int64_t span) { host.idle(seconds(span)); }};
}

}  // namespace wt::detail
