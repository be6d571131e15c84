// The trainer's NCCL side without a GPU: every layout trains over a library that stands for NCCL, as one rank alone
// does, what its ranks call keeps NCCL's rules, and nothing touches memory that a lane could still be at.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "tests/fixtures/families.hpp"
#include "tests/fixtures/nccl_contract.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;

namespace {

RunSpec two_steps() {
  RunSpec run = short_run();
  run.steps = 2;
  return run;
}

/// Two replicas with experts on two ranks, and an adapter on weights of ten steps.
RunSpec adapted() {
  RunSpec base = short_run();
  base.name = "base", base.save = false, base.export_path = scratch("base-weights").string();
  trained(base);
  RunSpec run = with_layout(two_steps(), 2, 2, 2);
  run.lora = LoraSpec{4, 16, {"q_proj", "v_proj", "o_proj"}};
  run.load_path = base.export_path;
  return run;
}

/// Those of e2e_layouts, of further models one or two each.
std::vector<RunSpec> layouts() {
  const RunSpec run = two_steps();
  std::vector<RunSpec> out;
  for (const auto& more : {sharded_runs(run), block_runs(run), further_layouts(run), uneven_runs(run),
                           context_runs(run), replicated_experts(run)})
    for (const RunSpec& each : more)
      if (each.layout.world() > 1) out.push_back(each);
  out.push_back(with_layout(run, 1, 4, 4));
  out.back().layout.placement = {{7, 2, 5, 0, 3, 6, 1, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}};
  RunSpec gpt_oss = run, predicting = run, unused = run, bf16 = run;  // unused: experts 2 to 7
  as_gpt_oss(gpt_oss.model);
  predicting.model.mtp_layers = 2;
  unused.model.router.forced = RouterSpec::Forced::zipf, unused.model.router.zipf_exponent = 40;
  bf16.precision = Precision::bf16;
  for (const RunSpec& each : {gpt_oss, predicting, unused, bf16}) out.push_back(with_layout(each, 1, 4, 4));
  for (const RunSpec& each : {predicting, bf16}) out.push_back(with_layout(each, 2, 2, 2));
  out.push_back(adapted());
  return out;
}

/// The same on one rank, in fp32.
RunSpec alone(RunSpec run) {
  run.layout = two_steps().layout, run.precision = Precision::fp32;
  return run;
}

void check_losses(const std::vector<Step>& expected, const std::vector<Step>& found, double epsilon) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].loss == Approx(expected[i].loss).epsilon(epsilon));
}

struct Recorded {
  fs::path folder;  ///< of the run
  Ended ended;
  std::vector<NcclRecord> calls;
};

/// `drop`: a wait that does nothing (lanes.hpp); empty: none.
Recorded recorded(const RunSpec& run, const std::string& name, const std::string& drop = "") {
  const fs::path record = scratch("nccl-" + name), folder = scratch("over-nccl-" + name);
  fs::create_directories(record);
  const Ended ended =
      train(run, folder,
            {.more = {"--max-restarts", "0"}, .environment = {{"WT_NCCL_RECORD", record}, {"WT_LANES_DROP", drop}}});
  return {folder, ended, nccl_records(record)};
}

/// Of the stream of computation ("wait") and of the lanes ("ready"): one of the latter is found whatever the memory.
struct LeftOut {
  std::map<std::string, std::int64_t> all, found;
  int covered = 0;  ///< by another wait, before anything touched what it was for
};

/// Trains with every `stride`th wait left out, one at a time.
LeftOut leave_out_waits(const RunSpec& run, std::int64_t stride) {
  const Recorded whole = recorded(run, "whole-" + run.layout.name());
  INFO(whole.ended.said);
  REQUIRE(whole.ended.status == 0);
  const nlohmann::json& last = whole.calls.front().back();
  LeftOut out;
  for (const std::string kind : {"wait", "ready"}) {
    const auto all = last.at(kind == "wait" ? "waits" : "readies").get<std::int64_t>();
    REQUIRE(all > 20);
    out.all[kind] = all;
    for (std::int64_t n = 0; n < all; n += stride) {
      const std::string drop = fmt::format("{} {}", kind, n);
      const Recorded found = recorded(run, fmt::format("{}-{}", run.layout.name(), drop), drop);
      INFO(drop << " of " << all << "\n" << found.ended.said);
      const bool covered = found.ended.status == 0;
      if (covered) {  // then nothing has read too early either
        CHECK_THAT(found.ended.said, Contains("wait covers"));
        check_losses(steps_of(whole.folder), steps_of(found.folder), 0);
      } else {
        CHECK_THAT(found.ended.said, Contains("before it wa") || Contains("at once") || Contains("does not wait for"));
      }
      if (covered)
        ++out.covered;
      else
        ++out.found[kind];
    }
  }
  return out;
}

RunSpec one_step(RunSpec run) {
  run.steps = 1, run.global_batch = 8, run.save = false;
  return run;
}

std::string all(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

std::string broken(const std::vector<NcclRecord>& calls) { return all(NcclContract(calls).broken()); }

/// Indices of the calls that say it.
std::vector<std::size_t> calls_of(const NcclRecord& record, const std::vector<std::string>& kinds) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < record.size(); ++i)
    if (std::count(kinds.begin(), kinds.end(), record[i].at("call").get<std::string>()) > 0) out.push_back(i);
  return out;
}

}  // namespace

TEST_CASE("every layout trains over NCCL's calls as one rank does, and keeps NCCL's rules") {
  int number = 0;
  for (const RunSpec& run : some_of(layouts())) {
    INFO(run.layout.name() << ", microbatch " << run.layout.microbatch);
    const Recorded found = recorded(run, std::to_string(++number));
    INFO(found.ended.said);
    REQUIRE(found.ended.status == 0);
    REQUIRE(found.calls.size() == static_cast<std::size_t>(run.layout.world()));
    const NcclContract contract(found.calls);
    CHECK(all(contract.broken()).empty());
    CHECK(contract.communicators() > 0);
    CHECK(contract.collectives() > 20);
    if (run.layout.expert > 1) CHECK(contract.messages() > 20);
    check_losses(steps_of(trained(alone(run))), steps_of(found.folder), run.precision == Precision::bf16 ? 1e-2 : 1e-5);
  }
}

TEST_CASE("planted mistakes in what ranks call are found") {
  static const std::vector<NcclRecord> right = recorded(with_layout(two_steps(), 2, 2, 2), "planted").calls;
  REQUIRE(broken(right).empty());
  const std::vector<std::string> collectives = {"all_gather", "reduce_scatter", "all_reduce", "broadcast"};
  std::mt19937 random(1);
  const auto one_of = [&](const std::vector<std::size_t>& from) {
    REQUIRE_FALSE(from.empty());
    return from[random() % from.size()];
  };
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<NcclRecord> wrong = right;
    NcclRecord& record = wrong[random() % wrong.size()];
    SECTION(fmt::format("two collectives of one communicator are swapped, {}", trial)) {
      for (;;) {
        const std::size_t a = one_of(calls_of(record, collectives)), b = one_of(calls_of(record, collectives));
        nlohmann::json first = record[a], second = record[b];
        first["number"] = second["number"] = 0, first["group"] = second["group"] = 0;
        if (record[a].at("comm") != record[b].at("comm") || first == second) continue;
        std::swap(record[a], record[b]);
        break;
      }
      CHECK_THAT(broken(wrong), Contains("do not meet"));
    }
    SECTION(fmt::format("a count is one too many, {}", trial)) {
      nlohmann::json& call = record[one_of(calls_of(record, {"all_gather", "reduce_scatter", "send", "receive"}))];
      call["count"] = call.at("count").get<std::int64_t>() + 1;
      CHECK_THAT(broken(wrong), Contains("do not meet"));
    }
    SECTION(fmt::format("a call is left out, {}", trial)) {
      const auto of = calls_of(record, {"all_gather", "reduce_scatter", "all_reduce", "send", "receive"});
      record.erase(record.begin() + static_cast<std::ptrdiff_t>(one_of(of)));
      CHECK_THAT(broken(wrong), Contains("do not meet"));
    }
    SECTION(fmt::format("another type, {}", trial)) {
      nlohmann::json& call = record[one_of(calls_of(record, collectives))];
      call["type"] = call.at("type").get<int>() == 7 ? 9 : 7;
      CHECK_THAT(broken(wrong), Contains("do not meet"));
    }
    SECTION(fmt::format("a receive is of another rank, {}", trial)) {
      nlohmann::json& call = record[one_of(calls_of(record, {"receive"}))];
      call["peer"] = 1 - call.at("peer").get<int>();
      CHECK_THAT(broken(wrong), Contains("do not meet"));
    }
    SECTION(fmt::format("a communicator is destroyed before its last call, {}", trial)) {
      const std::size_t destroyed = one_of(calls_of(record, {"destroy"}));
      const nlohmann::json line = record[destroyed];
      record.erase(record.begin() + static_cast<std::ptrdiff_t>(destroyed));
      const auto of = calls_of(record, collectives);
      const auto before =
          std::find_if(of.begin(), of.end(), [&](std::size_t i) { return record[i].at("comm") == line.at("comm"); });
      if (before == of.end()) continue;  // one of messages alone
      record.insert(record.begin() + static_cast<std::ptrdiff_t>(*before), line);
      CHECK_THAT(broken(wrong), Contains("after it was destroyed"));
    }
    SECTION(fmt::format("a communicator is not destroyed, {}", trial)) {
      record.erase(record.begin() + static_cast<std::ptrdiff_t>(one_of(calls_of(record, {"destroy"}))));
      CHECK_THAT(broken(wrong), Contains("destroyed 0 times"));
    }
  }
}

TEST_CASE("a wait that is left out is found: some of two ranks'") {
  LeftOut left_out = leave_out_waits(one_step(with_layout(two_steps(), 1, 2, 2)), 11);
  CHECK(left_out.found["wait"] > 4);
  CHECK(left_out.found["ready"] > 4);
  CHECK(left_out.covered == 0);
}

// At night, some minutes: e2e_nccl_contract_waits.
TEST_CASE("a wait that is left out is found: all, in other layouts", "[.waits]") {
  for (const RunSpec& run : {with_layout(two_steps(), 2, 2, 2), with_layout(two_steps(), 1, 4, 2, Recompute::block),
                             further_layouts(two_steps())[0], further_layouts(two_steps())[4],
                             context_runs(two_steps())[1], replicated_experts(two_steps())[0]}) {
    LeftOut left_out = leave_out_waits(one_step(run), 1);
    CHECK(left_out.found["ready"] == left_out.all["ready"]);
    CHECK(left_out.found["wait"] > left_out.covered);
    WARN(run.layout.name() << ": found were " << left_out.found["wait"] << " of " << left_out.all["wait"]
                           << " waits of the computation, " << left_out.covered << " are covered by another one; all "
                           << left_out.all["ready"] << " of the lanes");
  }
}
