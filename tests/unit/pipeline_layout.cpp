// Megatron-Core's strings for the chunks of a pipeline: what they say, that they read back, and what is refused.
#include "configs/files/pipeline_layout.hpp"

#include <catch2/catch.hpp>

#include "configs/files/run.hpp"
#include "tests/fixtures/pipelines.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;
using Layers = std::vector<std::int64_t>;

namespace {

PipelineLayout parsed(const std::string& text) { return pipeline_layout_from_string(text, "here"); }

}  // namespace

TEST_CASE("layout strings say layers and modules of each chunk") {
  // Megatron-Core's own example: DeepSeek-V3 with 16 stages of 2 chunks (docs of pipeline-model-parallel-layout).
  const PipelineLayout deepseek = parsed("Et*3|(tt|)*29,m|L");
  Layers expected(32, 2);
  expected[0] = 3, expected[30] = expected[31] = 0;
  CHECK(deepseek == PipelineLayout{expected, 1, true});
  // Its parser's examples: a group may hold |, begin or end with it.
  CHECK(parsed("Ett,(t|tt|t)*2,tL").layers == Layers{3, 2, 2, 2, 2});  // Ett t|tt|t t|tt|t tL
  CHECK(parsed("E(|tt)*2,t|L").layers == Layers{0, 2, 3, 0});
  CHECK(parsed("E | t*2 | t L").layers == Layers{0, 2, 1});
  // Recipes of Megatron-Bridge: H100 with 8 x 4 chunks, GB200 with 4 x 4.
  const PipelineLayout with_head = parsed("Et|(tt|)*30mL");
  CHECK(with_head.layers.size() == 32);
  CHECK(with_head.layers.back() == 0);
  CHECK(with_head.modules == 1);
  CHECK(!with_head.modules_before_head);
  CHECK(parsed("Et*4|(t*4|)*14tmL") ==
        PipelineLayout{Layers{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}, 1, false});
  CHECK(parsed("Et*2m*2L") == PipelineLayout{Layers{2}, 2, false});
}

TEST_CASE("layout strings read back") {
  for (const char* text : {"Et*3|(t*2|)*29m|L", "E|(t|)*94L", "Et*4|(t*4|)*14tm*2L", "EtL", "E|tL", "Et|L", "Et|tm|L",
                           "Et*2|t*3|(t*2|)*2t*5L"})
    CHECK(to_string(parsed(text)) == text);
}

TEST_CASE("layout strings that say nothing sensible are refused by name") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(parsed(text), Catch::Contains("here: '" + text + "': found " + why));
  };
  refused("", "E elsewhere than first and once");
  refused("tE|tL", "E elsewhere than first");
  refused("Et|EtL", "E elsewhere than first and once");
  refused("Et|tLt", "L elsewhere than last");
  refused("Et|t", "L elsewhere than last");
  refused("EtL|L", "L elsewhere than last and once");
  refused("Et|x|L", "'x'");
  refused("Et|t*|L", "'*', not a number");
  refused("Et|t*0|L", "'*0', not a number");
  refused("Et|t*2*2|L", "'*'");
  refused("Et*9999999L", "'*9999999', not a number");
  refused("E(t|L", "'(' without ')'");
  refused("Et|)L", "')' without '('");
  refused("E(t|)tL", "(..) without *n");
  refused("E((t|)*2)*2L", "'(' inside '('");
  refused("E(tttttttttt)*99999L", "99999 repeats");
  refused("Et||tL", "nothing in chunk 2 of 3");
  refused("Et|m|tL", "a layer t behind a module m");
  refused("Et|m|mL", "modules m in several chunks");
  refused("Etm|(t|)*2L", "a layer t behind a module m");
}

TEST_CASE("run files say chunks as Megatron-Core does, and read back") {
  const TempDirectory folder;
  RunSpec run;
  run.name = "staged", run.model = small_model(5), run.steps = 1, run.seq = 128, run.global_batch = 8;
  run.layout = stages(2, 2);
  const auto read = [&](const std::string& line) {
    std::string text = run_to_yaml(run);
    const std::string key = "virtual_pipeline_degree: 2\n";
    text.insert(text.find(key) + key.size(), "  " + line + "\n");
    write_bytes(folder / "run.yaml", text);
    return read_run(folder / "run.yaml");
  };
  const Layout ends = read("pipeline_layout: E|t*2|t*3|L").layout;
  CHECK(ends.chunk_layers == Layers{0, 2, 3, 0});
  CHECK(read("pipeline_layout: Et|tt|t|tL").layout.chunk_layers ==
        read("pipeline_chunk_layers: [1, 2, 1, 1]").layout.chunk_layers);
  run.layout.chunk_layers = ends.chunk_layers;
  CHECK(run_to_yaml(run).find("pipeline_layout: E|t*2|t*3|L\n") != std::string::npos);
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  CHECK(run_to_yaml(read_run(folder / "run.yaml")) == run_to_yaml(run));
  run.layout.chunk_layers.clear();

  CHECK_THROWS_WITH(read("pipeline_layout: Et*2|t*3L"), Catch::Contains("found 2 chunks of 5 layers"));
  CHECK_THROWS_WITH(read("pipeline_layout: E|t*2|t|L"), Catch::Contains("found 4 chunks of 3 layers"));
  CHECK_THROWS_WITH(read("pipeline_layout: E|t*4|tm|L"), Catch::Contains("found 1 modules m; needs the model's 0"));
  CHECK_THROWS_WITH(read("pipeline_chunk_layers: [3, 0, 1, 1]"), Catch::Contains("found 0 layers in chunk 2 of 4"));
  CHECK_THROWS_WITH(read("pipeline_layout: E|t*4|t|L\n  pipeline_chunk_layers: [0, 4, 1, 0]"),
                    Catch::Contains("needs one of them"));
  run.model.mtp_layers = 1;
  CHECK(read("pipeline_layout: E|t*4|tm|L").layout.modules_before_head);
  CHECK(!read("pipeline_layout: E|t*4|t|mL").layout.modules_before_head);
  run.layout.chunk_layers = {0, 5, 0, 0}, run.layout.modules_before_head = true;
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  CHECK(run_to_yaml(run).find("pipeline_layout: E|t*5|m|L\n") != std::string::npos);
  CHECK(read_run(folder / "run.yaml").layout.modules_before_head);
}
