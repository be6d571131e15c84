#include "sim/cluster/failing_host.hpp"

#include <array>
#include <cmath>
#include <exception>
#include <simgrid/Exception.hpp>
#include <simgrid/s4u.hpp>
#include <string>

namespace wt {
namespace sg = simgrid::s4u;

namespace {

constexpr double kSpeed = 1e9;  // of a core: SimGrid's precision of 1e-5 units is then far below a nanosecond

}  // namespace

struct FailingHost::Impl {
  sg::Host* host = nullptr;  ///< two cores: one for work, one for background work
  sg::Host* other = nullptr;
  sg::ActorPtr failure, behind;
  bool behind_done = false;
};

FailingHost::FailingHost() : impl_(std::make_unique<Impl>()) {}
FailingHost::~FailingHost() = default;

void FailingHost::simulate(const std::function<void(FailingHost&)>& program) {
  std::string name = "windtunnel", log = "--log=root.thresh:critical";
  std::array<char*, 3> arguments{name.data(), log.data(), nullptr};
  int count = 2;
  sg::Engine engine(&count, arguments.data());
  FailingHost self;
  sg::NetZone* zone = sg::create_empty_zone("run");
  self.impl_->host = zone->create_host("job", kSpeed)->set_core_count(2);
  self.impl_->other = zone->create_host("agent", kSpeed);
  zone->seal();
  std::exception_ptr thrown;
  sg::Actor::create("agent", self.impl_->other, [&] {
    try {
      program(self);
    } catch (const simgrid::ForcefulKillException&) {
      throw;  // SimGrid's exception for a killed actor
    } catch (...) {
      thrown = std::current_exception();  // an actor must not throw
    }
    self.stop();
  });
  engine.run();
  if (thrown) std::rethrow_exception(thrown);
}

double FailingHost::now() const { return sg::Engine::get_clock(); }

void FailingHost::start(double failure_s) {
  stop();
  impl_->host->turn_on();
  if (!std::isfinite(failure_s)) return;
  impl_->failure = sg::Actor::create("failure", impl_->other, [host = impl_->host, failure_s] {
    sg::this_actor::sleep_for(failure_s);
    host->turn_off();
  });
}

void FailingHost::stop() {
  for (sg::ActorPtr* each : {&impl_->behind, &impl_->failure}) {
    if (*each) (*each)->kill();
    *each = nullptr;
  }
  impl_->behind_done = false;
}

bool FailingHost::work(double seconds) {
  if (!impl_->host->is_on()) return false;
  if (seconds <= 0) return true;
  try {
    sg::Exec::init()->set_flops_amount(seconds * kSpeed)->set_host(impl_->host)->wait();
    return true;
  } catch (const simgrid::HostFailureException&) {
    return false;
  }
}

void FailingHost::start_behind(double seconds) {
  impl_->behind_done = seconds <= 0;
  if (seconds > 0)
    impl_->behind = sg::Actor::create("behind", impl_->host, [self = impl_.get(), seconds] {
      sg::this_actor::execute(seconds * kSpeed);
      self->behind_done = true;  // not reached if the host failed: that kills its actors
    });
}

bool FailingHost::wait_behind() {
  if (!impl_->host->is_on()) return false;
  if (!impl_->behind) return true;
  impl_->behind->join();
  return impl_->behind_done;
}

bool FailingHost::behind_done() const { return impl_->behind_done; }

void FailingHost::idle(double seconds) { sg::this_actor::sleep_for(seconds); }

}  // namespace wt
