// Adapters for tests in Python: "copy ADAPTER TO" reads and writes one, "modules CONFIG TARGET..." prints the modules
// that targets name.
#include <cstdio>
#include <string_view>

#include "configs/spec/adapted_modules.hpp"
#include "trainer/safetensors/adapter.hpp"

int main(int argc, char** argv) {
  try {
    const std::string_view verb = argc > 3 ? argv[1] : "";
    if (verb == "copy") {
      wt::write_adapter(argv[3], wt::read_adapter(argv[2]));
    } else if (verb == "modules") {
      const wt::LoraSpec spec{.rank = 1, .alpha = 1, .target_modules = {argv + 3, argv + argc}};
      for (const auto& module : wt::adapted_modules(wt::model_from_hugging_face(argv[2]), spec))
        std::printf("%s %ld %ld\n", module.name.c_str(), static_cast<long>(module.out), static_cast<long>(module.in));
    } else {
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
