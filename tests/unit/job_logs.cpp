// Logs of other trainers: what their lines mean, and what is said in place of a number.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "configs/base/number.hpp"
#include "configs/files/find.hpp"
#include "planner/explain/steady_steps.hpp"
#include "planner/job_logs/job_log.hpp"
#include "tests/fixtures/log_lines.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/trackers/event_records.hpp"

using namespace wt;
using namespace wt::test;

namespace {

JobLog read(const std::string& text, const std::string& name = "log.txt") {
  const TempDirectory folder;
  std::ofstream(folder / name, std::ios::binary) << text;
  return read_job_log(folder / name);
}

}  // namespace

TEST_CASE("torchtitan's lines, in colours and with the prefix of torchrun") {
  const JobLog log =
      read("Peak FLOPS used for computing MFU: 9.890e+14\n" + titan(1) + titan(10) + titan(10) + titan(20));
  CHECK(log.trainer == JobTrainer::torchtitan);
  REQUIRE(log.steps.size() == 3);
  CHECK((log.steps[1].step == 10 && log.steps[1].loss == 6.5));
  CHECK(log.steps[1].tokens_per_s_per_gpu == 6400);
  CHECK(log.steps[1].grad_norm == 1.2);
  CHECK(log.steps[1].memory_bytes == Approx(61.2 * kGiB_bytes));
  CHECK(log.steps[1].flops_per_gpu == Approx(320e12));
  CHECK(log.steps[1].mfu == Approx(0.3236));
  CHECK(log.peak_flops == Approx(989e12));
  CHECK(log.memory_is_reserved);
  CHECK(log.starts == std::vector<std::int64_t>{1});
  CHECK(log.notes.empty());
}

TEST_CASE("Megatron's lines; a loss that is not a number leaves its field out") {
  const JobLog log = read(megatron(10) + megatron(20, ""));
  CHECK(log.trainer == JobTrainer::megatron);
  REQUIRE(log.steps.size() == 2);
  CHECK(log.steps[0].step_s == 4);
  CHECK(log.steps[0].flops_per_gpu == Approx(400.5e12));
  CHECK(log.steps[0].global_batch == 256);
  CHECK(log.steps[0].grad_norm == 0.75);
  CHECK(std::isnan(log.steps[1].loss.value()));
  CHECK(says(log, "loss is not a number from step 20"));
}

TEST_CASE("Megatron-Bridge says the step's FLOPs a line before") {
  const JobLog log = read(
      "Step Time : 4.01s GPU utilization: 410.2MODEL_TFLOP/s/GPU\n"
      " iteration       10/     100 | elapsed time per iteration (ms): 4010.0 | lm loss: 2.0E+00 |\n");
  CHECK(log.steps.at(0).flops_per_gpu == Approx(410.2e12));
}

TEST_CASE("NeMo Automodel, NeMo, Composer and Hugging Face's bar") {
  const JobLog automodel = read(
      "2026-01-02 03:04:05 | INFO | root | step 4 | epoch 0 | loss 2.1130 | grad_norm 0.84 | lr 1.00e-05 | mem 45.20 "
      "GiB "
      "| tps 12345.60(1543.20/gpu) | num_label_tokens 8192\n");
  CHECK(automodel.trainer == JobTrainer::automodel);
  CHECK(automodel.steps.at(0).grad_norm == 0.84);
  CHECK(automodel.steps.at(0).tokens_per_s == Approx(12345.6));  // a "gpu" of it leaves tensor and pipeline ranks out
  CHECK_FALSE(automodel.memory_is_reserved);

  const JobLog nemo = read(
      "Training epoch 0, iteration 7/99 | lr: 1e-05 | global_batch_size: 512 | "
      "reduced_train_loss: 9.1 | grad_norm: 0.5 | train_step_timing in s: 5.1234\n");
  CHECK(nemo.steps.at(0).grad_norm == 0.5);
  CHECK((nemo.steps.at(0).step == 8 && nemo.steps.at(0).step_s == Approx(5.1234)));

  const JobLog composer = read(
      "[batch=11/50]:\n\t Train loss/train/total: 3.25\n\t Train l2_norm/grad/global: 2.5\n\t Train "
      "throughput/device/mfu: 0.41\n\t Train throughput/device/tokens_per_sec: 2000.5\n\t Train "
      "memory/peak_reserved_mem: "
      "61.5\n[batch=12/50]:\n\t Train loss/train/total: 3.0\n");
  CHECK(composer.trainer == JobTrainer::composer);
  REQUIRE(composer.steps.size() == 2);
  CHECK(composer.steps[0].grad_norm == 2.5);
  CHECK((composer.steps[0].mfu == 0.41 && composer.steps[0].tokens_per_s_per_gpu == 2000.5));
  CHECK(composer.steps[0].memory_bytes == 61.5e9);
  CHECK_FALSE(composer.steps[1].timed());

  const JobLog epochs = read("[epoch=2][batch=3/5]:\n\t Train loss/train/total: 3.25\n[token=1024/4096]:\n");
  CHECK((epochs.steps.at(0).step == 8 && says(epochs, "counted in tokens")));
}

TEST_CASE("Hugging Face's bar has whole seconds: windows of half a minute; other bars do not count") {
  std::string text = "Loading checkpoint shards: 100%|####| 13/13 [00:26<00:00,  2.05s/it]\n";
  for (int step = 1; step <= 400; ++step) {
    const int elapsed = step / 2;  // half a second a step
    text +=
        fmt::format(" {}%|#   | {}/400 [{:02}:{:02}<05:15,  2.00it/s]\r", step / 4, step, elapsed / 60, elapsed % 60);
    if (step % 50 == 0)
      text += "\n{'loss': '2.113', 'grad_norm': '0.84', 'epoch': '0.5'}\n  5%|# | 1/20 [00:00<00:01, 9.00it/s]\n";
  }
  const JobLog log = read(text);
  CHECK(log.trainer == JobTrainer::hugging_face);
  REQUIRE(log.steps.size() == 6);
  for (const LoggedStep& step : log.steps) CHECK(step.step_s.value() == Approx(0.5).epsilon(0.03));
}

TEST_CASE("metrics as JSON lines, and as Weights & Biases exports them") {
  const JobLog own = read(
      "{\"step\": 1, \"step_s\": 0.5, \"loss\": 3.0, \"grad_norm\": 0.1}\n"
      "{\"step\": 2, \"step_s\": 0.4, \"loss\": null, \"grad_norm\": null}\n");
  CHECK((own.steps[0].grad_norm == 0.1 && std::isnan(*own.steps[1].grad_norm)));
  CHECK(own.trainer == JobTrainer::windtunnel);
  CHECK((own.steps.size() == 2 && own.steps[1].step_s == 0.4 && std::isnan(*own.steps[1].loss)));
  const JobLog cut =
      read("{\"_step\": 1, \"tps\": 900.5, \"tps_per_gpu\": 90, \"mfu\": NaN}\n\n{\"_step\": 2, \"tps_per_");
  CHECK((cut.trainer == JobTrainer::automodel && cut.steps.size() == 1 && says(cut, "middle of a line")));
  const JobLog table =
      read("\"Step\",\"run-7 - throughput(tps)\",\"run-7 - throughput(tps)__MIN\"\n10,6400,6400\n20,6500,6500\n",
           "export.csv");
  CHECK((table.trainer == JobTrainer::torchtitan && table.steps.size() == 2));
  CHECK(table.steps[1].tokens_per_s_per_gpu == 6500);
  const JobLog tracked =
      read("\"train/global_step\",\"r - train/loss\",\"r - train/train_runtime\"\n5,2.5,10\n10,2.4,20\n15,2.3,30\n",
           "export.csv");
  CHECK((tracked.trainer == JobTrainer::hugging_face && tracked.steps.at(2).step_s == 2));
  CHECK_THAT(usage_error([] { read("Step,a - throughput(tps),b - throughput(tps)\n10,6400,6400\n", "export.csv"); }),
             Catch::Contains("columns of 2 runs"));
}

TEST_CASE("a CSV export is read by the rules of other metrics") {
  const JobLog evaluated = read(
      "train/global_step,r - train/loss,r - train/train_runtime,r - eval/runtime,r - train/train_loss\n"
      "5,2.5,10,,\n10,2.4,20,,\n10,,,8,\n15,2.3,38,,\n,,,,\n15,,90,,2.4\n",
      "export.csv");
  REQUIRE(evaluated.steps.size() == 3);
  CHECK(evaluated.steps[1].step_s == 2);
  CHECK(evaluated.steps[2].step_s == 2);  // 38 s - 8 s of the evaluation - 20 s
  CHECK(evaluated.notes.empty());
  const JobLog before = read("Step,throughput,iteration-time,batch-size\n4,400.5,4.5,256\n", "export.csv");
  CHECK((before.trainer == JobTrainer::megatron && before.steps.at(0).flops_per_gpu == Approx(400.5e12)));
  CHECK(before.steps.at(0).global_batch == 256);
}

TEST_CASE("rows of the same second have no time, and are no new start; many notes are counted") {
  const auto at = [](int step, int unix_s) {
    return fmt::format("{{\"train/global_step\": {}, \"train/loss\": 2.5, \"_timestamp\": {}}}\n", step, unix_s);
  };
  const JobLog same = read(at(1, 10) + at(2, 12) + at(3, 12) + at(4, 13));
  CHECK((same.starts == std::vector<std::int64_t>{1} && same.steps[1].step_s == 2 && !same.steps[2].step_s));
  CHECK(same.steps[3].step_s == 1);
  std::string again;
  for (int i = 0; i < 30; ++i) again += at(1, 10) + at(2, 12);
  const JobLog many = read(again);
  CHECK((many.notes.size() == 21 && says(many, "And 9 more.")));
}

namespace {

/// An entry of log_history, as transformers 4.57 writes it with include_num_input_tokens_seen.
std::string logged(int step, double runtime, const std::string& loss = "2.5") {
  return fmt::format(
      R"({{"epoch": 0.1, "grad_norm": 1.5, "loss": {}, "num_input_tokens_seen": {}, "step": {}, "train_runtime": {}}},)",
      loss, 2048 * step, step, runtime);
}

std::string state(const std::string& entries) {
  return R"({"epoch": 1.0, "global_step": 40,
  "log_history": [)" +
         entries + R"({"step": 40, "train_loss": 2.5, "train_runtime": 80.5}], "max_steps": 40})";
}

}  // namespace

TEST_CASE("trainer_state.json: seconds since the start, without those of evaluations") {
  const JobLog log = read(state(logged(1, 9) + logged(2, 10) + R"({"step": 2, "eval_loss": 3, "eval_runtime": 4},)" +
                                R"({"step": 3, "eval_web_runtime": 2},)" + logged(4, 19) + logged(5, 20, "NaN")),
                          "trainer_state.json");
  CHECK(log.trainer == JobTrainer::hugging_face);
  REQUIRE(log.steps.size() == 4);
  CHECK_FALSE(log.steps[0].timed());
  CHECK(log.steps[1].step_s == Approx(1));
  CHECK(log.steps[2].step_s == Approx((19.0 - 10 - 4 - 2) / 2));
  CHECK(log.steps[3].tokens == 5 * 2048);
  CHECK(std::isnan(log.steps[3].loss.value()));
  CHECK_FALSE(says(log, "left out"));
  const JobLog resumed = read(state(logged(1, 9) + logged(2, 10) + logged(3, 2) + logged(4, 3)));
  CHECK(resumed.starts == std::vector<std::int64_t>{1, 3});
  CHECK_FALSE(resumed.steps[2].timed());
  CHECK(says(resumed, "the log's clock begins again"));
}

TEST_CASE("a trainer_state.json without times, or cut, is refused") {
  const std::string untimed = R"({"loss": 2.5, "step": 10},)";
  CHECK_THAT(usage_error([&] { read(state(untimed)); }),
             Catch::Contains("only 80.5 s for all 40 steps") && Catch::Contains("include_num_input_tokens_seen"));
  CHECK_THAT(usage_error([&] { read(state(logged(1, 9)).substr(0, 150)); }), Catch::Contains("is cut"));
  CHECK_THAT(usage_error([] { read(R"({"log_history": 3})"); }), Catch::Contains("no list log_history"));
  CHECK_THAT(usage_error([] { read(state(logged(1, 9) + R"({"loss": "secret", "step": 2},)")); }),
             Catch::Contains("found no time") || !Catch::Contains("secret"));
}

TEST_CASE("what Hugging Face's Trainer wrote here: its own file, what it printed, and TensorBoard's") {
  const JobLog log = read_job_log("tests/data/job_logs/hugging_face/trainer_state.json");
  CHECK(log.trainer == JobTrainer::hugging_face);
  REQUIRE(log.steps.size() == 40);
  CHECK(log.notes.empty());
  CHECK(log.steps[5].step_s == Approx(4.6358 - 4.0173));
  CHECK(log.steps.back().tokens == 40 * 8 * 256);
  double all_s = 0;
  for (const LoggedStep& step : log.steps) all_s += step.step_s.value_or(0);
  CHECK(all_s + 1.3706 < 27.8724);        // the Trainer's own sum, with four evaluations
  CHECK(all_s + 1.3706 > 27.8724 - 2.5);  // of half a second each
  const JobLog printed = read_job_log("tests/data/job_logs/hugging_face/stdout.log");
  REQUIRE(printed.steps.size() == log.steps.size());
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    CHECK((printed.steps[i].step == log.steps[i].step && printed.steps[i].tokens == log.steps[i].tokens));
    CHECK((log.steps[i].grad_norm > 0 && printed.steps[i].grad_norm == log.steps[i].grad_norm));
    CHECK(printed.steps[i].step_s.value_or(0) == Approx(log.steps[i].step_s.value_or(0)).margin(1e-9));
  }
  const JobLog events = read_job_log("tests/data/job_logs/hugging_face/events.out.tfevents.0");
  CHECK((events.trainer == JobTrainer::hugging_face && events.notes.empty()));
  REQUIRE(events.steps.size() == log.steps.size());
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    CHECK(events.steps[i].step == log.steps[i].step);
    CHECK(events.steps[i].loss.value() == Approx(log.steps[i].loss.value()));
    CHECK(events.steps[i].grad_norm.value() == Approx(log.steps[i].grad_norm.value()));
    CHECK(events.steps[i].step_s.value_or(0) == Approx(log.steps[i].step_s.value_or(0)).margin(1e-5));
  }
}

namespace {

/// An event with a tensor of one float: DataType 1, a shape without dimensions, tensor_content.
std::string tensor_event(std::int64_t step, const std::string& tag, float value) {
  std::string event = scalar_event(1.5, step, tag, value);
  const std::string number = event.substr(event.size() - 4);
  std::string tensor = std::string("\x08\x01\x12\x00\x22\x04", 6) + number;
  std::string one = "\x0a" + std::string(1, static_cast<char>(tag.size())) + tag + "\x42" +
                    std::string(1, static_cast<char>(tensor.size())) + tensor;
  std::string summary = "\x0a" + std::string(1, static_cast<char>(one.size())) + one;
  return event.substr(0, event.find('\x2a')) + "\x2a" + std::string(1, static_cast<char>(summary.size())) + summary;
}

std::string megatron_event() { return event_record(scalar_event(2, 90, "iteration-time", 4.5)); }

/// Steps 10, 20, .. of torchtitan, among tags that nobody knows.
std::string titan_events(int steps) {
  std::string out = event_record(version_event(1e9));
  for (int i = 1; i <= steps; ++i) {
    const double unix_s = 1e9 + 12.8 * i;
    out += event_record(scalar_event(unix_s, 10 * i, "loss_metrics/global_avg_loss", 7 - 0.5 * i));
    out += event_record(scalar_event(unix_s, 10 * i, "lr", 1e-4));
    out += event_record(scalar_event(unix_s + 1, 640 * i, "lr vs samples", 1e-4));
    out += event_record(tensor_event(10 * i, "throughput(tps)", 6000.0F + static_cast<float>(i)));
    out += event_record(scalar_event(unix_s, 10 * i, "memory/max_reserved(GiB)", 61.25));
  }
  return out;
}

}  // namespace

TEST_CASE("TensorBoard's event files: simple values and tensors, other tags left out") {
  const JobLog log = read(titan_events(3), "events.out.tfevents.1");
  CHECK((log.trainer == JobTrainer::torchtitan && log.memory_is_reserved && log.notes.empty()));
  REQUIRE(log.steps.size() == 3);
  CHECK((log.steps[1].step == 20 && log.steps[1].loss == 6 && log.steps[1].tokens_per_s_per_gpu == 6002));
  CHECK(log.steps[1].memory_bytes == Approx(61.25 * kGiB_bytes));
  CHECK(log.steps[2].clock_s.value() - log.steps[1].clock_s.value() == Approx(12.8));

  const std::string megatron_events =
      event_record(version_event(1)) + event_record(scalar_event(2, 4, "iteration-time", 4.5)) +
      event_record(scalar_event(2, 4, "iteration-time vs samples", 4.5)) +
      event_record(scalar_event(2, 4, "throughput", 400.5)) + event_record(scalar_event(2, 4, "batch-size", 256)) +
      event_record(scalar_event(2, 4, "lm loss", std::nan("")));
  const JobLog megatron = read(megatron_events);
  CHECK((megatron.trainer == JobTrainer::megatron && megatron.steps.at(0).step_s == 4.5));
  CHECK(std::isnan(megatron.steps[0].loss.value()));
  CHECK((megatron.steps[0].flops_per_gpu == Approx(400.5e12) && megatron.steps[0].global_batch == 256));
  const JobLog nemo = read(event_record(scalar_event(2, 4, "train_step_timing in s", 5.5)));
  CHECK((nemo.trainer == JobTrainer::megatron && nemo.steps.at(0).step_s == 5.5));
}

TEST_CASE("what Composer wrote here: its console, and TensorBoard's files, a new one with every flush") {
  const JobLog printed = read_job_log("tests/data/job_logs/composer/stderr.log");
  const JobLog events = read_job_log("tests/data/job_logs/composer/events");
  for (const JobLog& log : {printed, events}) {
    CHECK((log.trainer == JobTrainer::composer && log.memory_is_reserved && log.starts.size() == 1));
    // Rates are means of five batches, and there are none before: the first batches are left out.
    CHECK((log.notes.size() == 1 && says(log, "without a usable time or rate")));
  }
  REQUIRE(printed.steps.size() == 30);
  REQUIRE(events.steps.size() == 31);  // its loss has the number of the batch before
  for (std::size_t i = 0; i < 30; ++i) {
    CHECK((printed.steps[i].step == std::int64_t(i) + 1 && events.steps[i].step == std::int64_t(i)));
    CHECK(printed.steps[i].loss.value() == Approx(events.steps[i].loss.value()).margin(1e-4));
    CHECK(printed.steps[i].tokens_per_s_per_gpu.value_or(0) ==
          Approx(events.steps[i + 1].tokens_per_s_per_gpu.value_or(0)).margin(1e-3));
  }
  CHECK(printed.steps.back().tokens_per_s_per_gpu == Approx(2216.5596));
  const TempDirectory folder;
  CHECK_THAT(usage_error([&] { read_job_log(folder.path()); }), Catch::Contains("a folder of 0 event files"));
}

TEST_CASE("an event file that is cut says so; a damaged one is refused") {
  const std::string all = titan_events(3);
  const std::size_t last = event_record(scalar_event(1, 30, "memory/max_reserved(GiB)", 1)).size();
  for (std::size_t less = 1; less <= last; ++less) {
    const JobLog log = read(all.substr(0, all.size() - less));
    CHECK(says(log, "middle of a record") == (less != last));
    CHECK((log.steps.size() == 3 && !log.steps[2].memory_bytes));
  }
  for (std::size_t at = 0; at < all.size(); at += 7) {
    std::string damaged = all;
    damaged[at] ^= 0x10;
    if (at < 12) continue;  // then it is no event file at all
    CHECK_THAT(usage_error([&] { read(damaged); }), Catch::Contains("another checksum"));
  }
  CHECK_THAT(usage_error([&] { read(event_record(version_event(1))); }), Catch::Contains("found no step"));
  std::string length("\x01\0\0\x04\0\0\0\0", 8);  // a byte more than 64 MiB
  for (std::uint32_t sum = masked_crc32c(length), i = 0; i < 4; ++i) length += static_cast<char>(sum >> 8 * i & 0xff);
  CHECK_THAT(usage_error([&] { read(titan_events(1) + length + "cut"); }), Catch::Contains("more than 64 MiB"));
  CHECK_THAT(usage_error([&] { read(event_record("\x0a\xff\xff\xff")); }), Catch::Contains("found no event"));
  CHECK_THAT(usage_error([&] { read(titan_events(2) + megatron_event()); }), Catch::Contains("beside metrics of"));
  CHECK_THAT(usage_error([&] { read(event_record(scalar_event(1, -4, "iteration-time", 4))); }),
             Catch::Contains("a step that is no number"));
}

TEST_CASE("an offline run of Weights & Biases, as wandb 0.31.0 wrote it here") {
  const std::filesystem::path file = "tests/data/job_logs/run.wandb";
  const JobLog log = read_job_log(file);
  CHECK((log.trainer == JobTrainer::torchtitan && log.memory_is_reserved && log.notes.empty()));
  REQUIRE(log.steps.size() == 20);
  for (int i = 1; i <= 20; ++i) {
    const LoggedStep& step = log.steps[static_cast<std::size_t>(i - 1)];
    CHECK((step.step == 10 * i && step.tokens_per_s_per_gpu == 6000 + 10 * i && step.loss == 7 - i / 16.0));
    CHECK(step.memory_bytes == Approx(61.25 * kGiB_bytes));
    CHECK(step.mfu == Approx(0.325));
  }
  const std::string all = read_bytes(file);
  REQUIRE(all.size() > 32768);  // a row lies across two blocks
  const JobLog cut = read(all.substr(0, 32768), "run-1.wandb");
  CHECK((cut.steps.size() > 10 && cut.steps.size() < 20 && says(cut, "middle of a record")));
  for (std::size_t at = 7; at < all.size(); at += 997) {
    std::string damaged = all;
    damaged[at] ^= 0x10;
    const std::string why = usage_error([&] { read(damaged); });
    CHECK((why.find("another checksum") != std::string::npos || why == "no error"));  // a longer length: cut
  }
  CHECK_THAT(usage_error([&] { read(all.substr(0, 7)); }), Catch::Contains("found no step"));
}

TEST_CASE("a job that started again: of a step done twice the last copy counts, and what was lost goes") {
  const JobLog log = read(titan(10) + titan(20) + titan(30) + "Training starts at step 11\n" + titan(11) +
                          titan(20, "6.40000", "6,600"));
  REQUIRE(log.steps.size() == 3);
  CHECK(log.steps.back().tokens_per_s_per_gpu == 6600);
  CHECK(log.starts == std::vector<std::int64_t>{10, 11});
  CHECK(says(log, "After step 30 the log goes on at step 11: the job started again"));
}

TEST_CASE("lines of several nodes, of stages without a loss, and glued ones are one job's") {
  const std::string glued = titan(20).substr(0, titan(20).size() - 1) + titan(30);
  const JobLog log = read(titan(1) + titan(10, "-1.00000") + titan(10) + titan(1) + glued + titan(20) +
                          "Training starts at step 31\n" + titan(31));
  REQUIRE(log.steps.size() == 5);
  CHECK((log.steps[1].loss == 6.5 && log.steps[2].step == 20 && log.steps[3].step == 30));
  CHECK(log.starts == std::vector<std::int64_t>{1, 31});
  CHECK(says(log, "After step 30 the log goes on at step 31: the job started again."));
}

TEST_CASE("a log that cannot be told is refused, or says so") {
  SECTION("no number") {
    CHECK(says(read(titan(10) + titan(20, "6.5", "nan")), "One logged step is without a usable time"));
    CHECK_THAT(
        usage_error([] { read("iteration 99999999999999999999/ 100 | elapsed time per iteration (ms): 1 |\n"); }),
        Catch::Contains("at most 15 digits"));
  }
  SECTION("cut in a line") {
    CHECK(says(read(titan(10) + titan(20).substr(0, 160)), "middle of a line"));
    CHECK(says(read(titan(10) + "step: 15  loss:  6.1  memory: 6\n" + titan(20)), "One line looks like a step"));
  }
  SECTION("two runs") {
    CHECK_THAT(usage_error([] {
                 std::string both;
                 for (int step = 1; step < 9; ++step) both += titan(step) + titan(100 + step, "3.0");
                 read(both);
               }),
               Catch::Contains("going back and forth"));
  }
  SECTION("two trainers") {
    CHECK_THAT(usage_error([] { read(titan(10) + megatron(20)); }), Catch::Contains("step of Megatron after"));
  }
  SECTION("another locale") {
    CHECK_THAT(usage_error([] { read(titan(10, "6,50000")); }), Catch::Contains("found loss '6,50000'"));
    CHECK_THAT(usage_error([] { read(titan(10, "6.5", "6.400,5")); }), Catch::Contains("tps '6.400,5'"));
  }
  SECTION("no step, no file") {
    CHECK_THAT(usage_error([] { read("Epoch 1 of 3\n"); }), Catch::Contains("found no step of torchtitan"));
    CHECK_THAT(usage_error([] { read_job_log("/nowhere/log"); }), Catch::Contains("no regular file"));
  }
}

namespace {

std::string llama_log(double tflops, const std::string& extra = "") {
  std::string out = extra;
  for (int step = 1; step <= 60; step += step == 1 ? 9 : 10) {
    const int tps = step == 1 ? 900 : step == 10 ? 5000 : step == 30 ? 3000 : 6000;
    out += fmt::format("step: {}  loss:  6.5  memory: 50.00GiB(63.00%)  tps: {}  tflops: {:.2f}  mfu: 30.00%\n", step,
                       tps, tflops * tps / 6000);
  }
  return out;
}

SteadySteps steady(const std::string& text) {
  return steady_steps(read(text), read_run(find_config("runs", "llama3-8b-128-h100")), "log.txt");
}

}  // namespace

TEST_CASE("steady steps leave the warm-up out; a log of another model is refused") {
  // 6 x (8.03B - 0.53B of embeddings) + 12 x 32 layers x 4096 x 8192 = 57.9 GFLOP a token, as torchtitan counts.
  const SteadySteps steps = steady(llama_log(6000 * 57.9e9 / 1e12));
  CHECK((steps.first == 20 && steps.last == 60 && steps.windows == 5 && steps.slow == 1));
  CHECK(steps.step_s == Approx(256 * 8192.0 / (6000 * 128)));
  CHECK(steps.flops_per_token == Approx(57.9e9).epsilon(0.01));
  CHECK(steps.memory_bytes == Approx(50 * kGiB_bytes));
  CHECK_THAT(usage_error([] { steady(llama_log(6000 * 20e9 / 1e12)); }), Catch::Contains("20 GFLOP a token"));
  const auto of_tokens = [](std::int64_t tokens) {  // a step of 256 x 8192, as Hugging Face's Trainer counts them
    std::string entries;
    for (int step = 1; step < 8; ++step)
      entries += fmt::format(R"({{"loss": 2.5, "step": {}, "train_runtime": {}, "num_input_tokens_seen": {}}},)", step,
                             3.0 * step, tokens * step);
    return state(entries);
  };
  CHECK(steady(of_tokens(2097152)).tokens_per_step == 2097152);
  CHECK(steady(of_tokens(1500000)).tokens_per_step == 1500000);  // the others are padding
  CHECK(steady(of_tokens(1500000)).step_s == Approx(3));
  for (const std::int64_t others : {2097152 * 2, 2097152 / 4})
    CHECK_THAT(usage_error([&] { steady(of_tokens(others)); }), Catch::Contains("and the job has 2097152"));
  CHECK_THAT(usage_error([] { steady(titan(1) + titan(10) + titan(20)); }), Catch::Contains("needs 3 at least"));
  std::string others;
  for (int step = 1; step < 7; ++step)
    others +=
        fmt::format(" iteration {}/ 100 | elapsed time per iteration (ms): 4000.0 | global batch size: 512 |\n", step);
  CHECK_THAT(usage_error([&] { steady(others); }), Catch::Contains("global batch of 512"));
  std::string clock;  // 2.7 s by its rates, 0.1 s by its clock
  for (int step = 1; step < 9; ++step)
    clock += fmt::format(
        "[titan] 2026-01-02 03:04:{:02},000 - root - INFO - step: {}  loss:  6.5  memory: 50.00GiB(63.00%)"
        "  tps: 6,000  tflops: 347.00  mfu: 30.00%\n",
        step, step * 10);
  CHECK_THAT(usage_error([&] { steady(clock); }), Catch::Contains("by the log's clock"));
}
