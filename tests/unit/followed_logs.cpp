// Logs of other trainers that grow: what a follower has read of them at any moment.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <span>

#include "configs/base/number.hpp"
#include "planner/job_logs/job_log.hpp"
#include "planner/job_logs/log_follower.hpp"
#include "tests/fixtures/log_lines.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// A log that grows.
class Growing {
 public:
  explicit Growing(const std::string& text) { add(text); }
  void add(const std::string& text) { std::ofstream(file(), std::ios::binary | std::ios::app) << text; }
  void rewrite(const std::string& text) { std::ofstream(file(), std::ios::binary) << text; }
  void rotate(const std::string& text) {
    std::filesystem::rename(file(), folder_ / "job.log.1");
    rewrite(text);
  }
  std::filesystem::path file() const { return folder_ / "job.log"; }

 private:
  TempDirectory folder_;
};

std::vector<std::int64_t> steps_of(const LogFollower& follower) {
  std::vector<std::int64_t> out;
  for (const LoggedStep& step : follower.log().steps) out.push_back(step.step);
  return out;
}

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a log is followed: whole lines count once, and half a line waits for its end") {
  const std::string whole = titan(20);
  Growing log("nothing yet\n");
  LogFollower follower(log.file());
  CHECK(follower.look().empty());
  CHECK(steps_of(follower).empty());
  log.add(titan(10) + whole.substr(0, 90));
  follower.look();
  CHECK(steps_of(follower) == Steps{10});
  const std::int64_t before = follower.log().places;
  log.add(whole.substr(90));
  follower.look();
  CHECK(steps_of(follower) == Steps{10, 20});
  CHECK((follower.log().steps[0].place <= before && follower.log().steps[1].place > before));
  follower.look();
  CHECK_FALSE(follower.grew());
  CHECK_FALSE(follower.log().ended);
  log.add("[titan] 2026-01-02 03:09:05,678 - root - INFO - Training completed\n");
  follower.look();
  CHECK(follower.log().ended);
  log.add("Training starts at step 21\n" + titan(30));
  follower.look();
  CHECK_FALSE(follower.log().ended);
}

TEST_CASE("a followed log and a whole one say the same, wherever it was cut meanwhile") {
  const std::string text = "Peak FLOPS used for computing MFU: 9.890e+14\n" + titan(10) + "warning\n" + titan(20) +
                           titan(20, "-1.00000") + "Training starts at step 11\n" + titan(15, "6.1") + titan(25, "nan");
  const JobLog whole = read_job_log(Growing(text).file());
  for (std::size_t part = 1; part < 400; part += 37) {
    Growing log("");
    LogFollower follower(log.file());
    for (std::size_t at = 0; at < text.size(); at += part) {
      log.add(text.substr(at, part));
      follower.look();
    }
    const JobLog followed = follower.log();
    INFO(part);
    REQUIRE(followed.steps.size() == whole.steps.size());
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      CHECK(followed.steps[i].step == whole.steps[i].step);
      CHECK((followed.steps[i].loss == whole.steps[i].loss || std::isnan(*whole.steps[i].loss)));
      CHECK(followed.steps[i].place == whole.steps[i].place);
    }
    CHECK(followed.starts == whole.starts);
    CHECK(followed.peak_flops == whole.peak_flops);
  }
}

TEST_CASE("a log that is rotated, truncated or gone says so, and goes on") {
  Growing log(titan(10) + titan(20));
  LogFollower follower(log.file());
  follower.look();
  log.add(titan(30));
  log.rotate(titan(30) + titan(40));  // another node's line of step 30 comes late
  CHECK(follower.look() == std::vector<std::string>{"was replaced by another file; goes on with that one"});
  CHECK(steps_of(follower) == Steps{10, 20, 30, 40});
  CHECK(follower.log().starts == Steps{10});
  log.rewrite(titan(50));  // as copytruncate does
  CHECK(follower.look() == std::vector<std::string>{"was truncated; goes on from its beginning"});
  CHECK(steps_of(follower) == Steps{10, 20, 30, 40, 50});
  log.rewrite(titan(35, "6.1") + titan(45, "6.0"));  // longer than before, other text
  CHECK(follower.look().size() == 1);
  CHECK(steps_of(follower) == Steps{10, 20, 30, 35, 45});
  CHECK(follower.log().starts == Steps{10, 35});
  std::filesystem::remove(log.file());
  CHECK(follower.look() == std::vector<std::string>{"is gone; waits for a new file of that name"});
  CHECK(follower.look().empty());
  log.rewrite(titan(55));
  follower.look();
  CHECK(steps_of(follower) == Steps{10, 20, 30, 35, 45, 55});
}

TEST_CASE("what has no lines is read again where it has changed: steps come in the order in which they were written") {
  const std::string whole = read_bytes("tests/data/job_logs/hugging_face/events.out.tfevents.0");
  const Steps steps = [&] {
    Steps out;
    for (const LoggedStep& step : read_job_log(Growing(whole).file()).steps) out.push_back(step.step);
    return out;
  }();
  REQUIRE(steps.size() > 3);
  Growing log(whole.substr(0, 100));
  LogFollower follower(log.file());
  std::int64_t places = 0;
  for (std::size_t at = 100; at < whole.size(); at += 777) {
    log.add(whole.substr(at, 777));
    CHECK(follower.look().empty());
    const JobLog now = follower.log();
    CHECK(follower.grew() == (now.places > places));
    CHECK(std::ranges::equal(steps_of(follower), std::span(steps).first(now.steps.size())));
    for (const LoggedStep& step : now.steps) CHECK((step.place >= 1 && step.place <= now.places));
    places = now.places;
  }
  CHECK(steps_of(follower) == steps);
  CHECK(follower.log().notes.empty());
  follower.look();
  CHECK_FALSE(follower.grew());
  std::filesystem::remove(log.file());
  CHECK(follower.look() == std::vector<std::string>{"is gone; waits for a new file of that name"});
}

TEST_CASE("a document that is read while it is written is an error only if it stays so") {
  const std::string whole = read_bytes("tests/data/job_logs/hugging_face/trainer_state.json");
  Growing log(whole);
  LogFollower follower(log.file());
  follower.look();
  const Steps steps = steps_of(follower);
  CHECK(steps.size() > 3);
  log.rewrite(whole.substr(0, whole.size() / 2));
  CHECK(follower.look().empty());
  CHECK((steps_of(follower) == steps && !follower.grew()));
  CHECK_THAT(usage_error([&] { follower.look(); }), Catch::Contains("job.log"));
}

TEST_CASE("a folder of event files goes on in a new file") {
  const TempDirectory folder;
  const std::filesystem::path from = "tests/data/job_logs/composer/events";
  std::vector<std::filesystem::path> files = files_of_log(from);
  REQUIRE(files.size() > 1);
  std::filesystem::copy(files[0], folder / files[0].filename().string());
  LogFollower follower(folder / "");
  follower.look();
  const Steps first = steps_of(follower);
  for (const auto& file : std::span(files).subspan(1)) std::filesystem::copy(file, folder / file.filename().string());
  follower.look();
  CHECK((steps_of(follower).size() > first.size() && follower.grew()));
  CHECK(follower.log().steps.size() == read_job_log(from).steps.size());
}

TEST_CASE("metrics as JSON lines are followed, too, and what cannot be read stays unread") {
  Growing log("{\"step\": 1, \"tps\": 900.5, \"mem\": 40, \"loss\": 3.0}\n{\"step\": 2, \"tps\": 9");
  LogFollower follower(log.file());
  follower.look();
  CHECK(steps_of(follower) == Steps{1});
  log.add("01.0, \"loss\": 2.9}\n");
  follower.look();
  CHECK(steps_of(follower) == Steps{1, 2});
  log.add("no object\n");
  for (int look = 0; look < 2; ++look)
    CHECK_THAT(usage_error([&] { follower.look(); }), Catch::Contains("line 3") && Catch::Contains("JSON object"));
  CHECK(steps_of(follower) == Steps{1, 2});
  CHECK_THAT(usage_error([] { LogFollower("/nowhere/log").look(); }), Catch::Contains("needs the log of a job"));
  CHECK_THAT(usage_error([] { LogFollower("/dev/zero").look(); }), Catch::Contains("regular file"));
  Growing endless(std::string((std::size_t{64} << 20) + 1, 'x'));
  CHECK_THAT(usage_error([&] { read_job_log(endless.file()); }), Catch::Contains("more than 64 MiB"));
  CHECK_THAT(usage_error([&] { LogFollower(endless.file()).look(); }), Catch::Contains("more than 64 MiB"));
}

namespace {

/// Half a second a step, a loss each 20 steps, and behind it the bar once more.
std::string trainer_log(int first, int last, bool bars = true) {
  std::string out;
  for (int step = first; step <= last; ++step) {
    const std::string bar =
        fmt::format(" {}%|#   | {}/400 [{:02}:{:02}<05:15,  2.00it/s]", step / 4, step, step / 120, step / 2 % 60);
    if (bars && step % 20 != 0) out += bar + "\r";
    if (step % 20 == 0)
      out += fmt::format("{{'loss': {:.3f}, 'grad_norm': '0.84', 'epoch': '0.5'}}\n", 3 - 0.001 * step) +
             (bars ? bar + "\r" : "");
  }
  return out;
}

}  // namespace

TEST_CASE("Hugging Face's losses get the steps of the bar that is drawn behind them") {
  Growing log(trainer_log(1, 200) + "\n");
  LogFollower follower(log.file());
  follower.look();
  JobLog read = follower.log();
  CHECK(read.trainer == JobTrainer::hugging_face);
  REQUIRE(read.steps.size() == 10);
  CHECK((read.steps[0].step == 20 && read.steps[9].step == 200));
  CHECK(read.steps[9].loss == Approx(2.8));
  CHECK(read.steps[9].grad_norm == 0.84);
  CHECK_FALSE(read.steps[1].step_s);  // the bar has whole seconds: after half a minute
  CHECK(read.steps[9].step_s.value() == Approx(0.5).epsilon(0.04));
  log.add("Resuming training from checkpoint\n" + trainer_log(101, 140) + "\n");
  follower.look();
  CHECK(steps_of(follower) == Steps{20, 40, 60, 80, 100, 120, 140});
  log.add("{'train_runtime': '70.1', 'train_samples_per_second': '9'}\n");
  follower.look();
  CHECK(follower.log().ended);
  log.add(" 50%|#   | 200/400 [01:40<05:15,  2.00it/s]\n100%|#| 20/20 [00:03<00:00]\n{'eval_loss': '2.5'}\n");
  follower.look();
  CHECK_FALSE(follower.log().ended);  // from step 140 to 200
}

TEST_CASE("a job of Hugging Face's Trainer that has ended goes on with its next loss, not with an evaluation") {
  const std::string end = "{'train_runtime': '70.1', 'train_loss': '9'}\n";
  Growing log(trainer_log(1, 400) + "\n" + end);
  LogFollower follower(log.file());
  follower.look();
  CHECK(follower.log().ended);
  log.add("100%|#   | 400/400 [03:20<00:00,  2.00it/s]\n 50%|#| 10/20 [00:03<00:03]\n100%|#| 20/20 [00:06<00:00]\n");
  follower.look();
  CHECK(follower.log().ended);
  log.add("{'loss': 2.5, 'grad_norm': 1}\n");
  follower.look();
  CHECK_FALSE(follower.log().ended);
  log.add(end);
  follower.look();
  CHECK(follower.log().ended);
}

TEST_CASE("losses behind the last bar wait, and leave the others their steps") {
  Growing log(trainer_log(1, 199) + "\n{'loss': 2.5}\n{'loss': 2.4}\n");
  LogFollower follower(log.file());
  follower.look();
  CHECK(steps_of(follower) == Steps{20, 40, 60, 80, 100, 120, 140, 160, 180});
  CHECK_FALSE(says(follower.log(), "counted in logged losses"));
}

TEST_CASE("Composer's last block has the place of its own last line, whatever follows") {
  Growing log("[batch=11/50]:\n\t Train loss/train/total: 3.25\n[batch=12/50]:\n\t Train loss/train/total: 3.0\n");
  LogFollower follower(log.file());
  for (int look = 0; look < 3; ++look) {
    follower.look();
    const JobLog read = follower.log();
    REQUIRE(read.steps.size() == 2);
    CHECK((read.steps[0].place == 2 && read.steps[1].place == 4 && read.places == 4 + look));
    log.add("a warning\n");
  }
}

TEST_CASE("a log that is replaced before it says anything may become one of metrics") {
  Growing log("");
  LogFollower follower(log.file());
  follower.look();
  log.rotate("{\"step\": 1, \"tps\": 900.5}\n");
  follower.look();
  CHECK(steps_of(follower) == Steps{1});
  CHECK(follower.log().trainer == JobTrainer::automodel);
}

TEST_CASE("losses of Hugging Face's Trainer with seconds since the start are timed by these while they are followed") {
  const JobLog whole = read_job_log("tests/data/job_logs/hugging_face/stdout.log");
  LogFollower follower("tests/data/job_logs/hugging_face/stdout.log");
  follower.look();
  const JobLog followed = follower.log();
  CHECK((followed.ended && followed.notes.empty() && followed.starts == whole.starts));
  REQUIRE(followed.steps.size() == whole.steps.size());
  for (std::size_t i = 0; i < whole.steps.size(); ++i)
    CHECK((followed.steps[i].step == whole.steps[i].step && followed.steps[i].step_s == whole.steps[i].step_s));
}

TEST_CASE("losses without a bar, or that came late, are counted") {
  for (const std::string& text :
       {trainer_log(1, 200, false), " 10%|#| 40/400 [00:20<05:15, 2.00it/s]\r\n" + trainer_log(1, 200, false) +
                                        " 10%|#| 200/400 [01:40<05:15, 2.00it/s]\r\n"}) {
    Growing log(text);
    LogFollower follower(log.file());
    follower.look();
    CHECK(steps_of(follower) == Steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    CHECK(says(follower.log(), "counted in logged losses"));
  }
}
