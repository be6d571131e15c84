// One call of a store from the command line, for tests of the storage client against servers in Python: prints what it
// gives to standard output, an error and its kind to standard error, and ends with the error's status.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "configs/spec/support/atomic_file.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/safetensors/sealed_document.hpp"
#include "trainer/storage/mirror.hpp"

namespace {

using namespace wt;

const char* word(StoreFailed::Kind kind) {
  switch (kind) {
    case StoreFailed::Kind::not_found:
      return "not_found";
    case StoreFailed::Kind::exists:
      return "exists";
    case StoreFailed::Kind::denied:
      return "denied";
    case StoreFailed::Kind::wrong_place:
      return "wrong_place";
    case StoreFailed::Kind::damaged:
      return "damaged";
    case StoreFailed::Kind::unreachable:
      return "unreachable";
    case StoreFailed::Kind::other:
      return "other";
  }
  return "";
}

std::vector<std::string> shards() { return {"shard-1.safetensors", "shard-2.safetensors"}; }

/// A checkpoint folder as the trainer leaves it, of some 40 MiB; `step` is in every value.
void make_checkpoint(std::int64_t step, const std::filesystem::path& folder) {
  const std::filesystem::path checkpoint = folder / step_name(step);
  std::filesystem::create_directories(checkpoint);
  const std::vector<float> values(5 << 20, static_cast<float>(step));
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& name : shards()) {
    const auto count = static_cast<std::int64_t>(values.size());
    const WrittenFile file = write_safetensors(checkpoint / name, {{"w", "F32", {count}, values.data()}});
    files.push_back({{"name", name}, {"bytes", file.bytes}, {"header_xxh3", file.header_xxh3}});
  }
  const nlohmann::json none = nlohmann::json::object();
  write_file_atomically(checkpoint / "manifest.json", sealed({{"schema", kCheckpointSchema},
                                                              {"step", step},
                                                              {"data", none},
                                                              {"model", none},
                                                              {"sampler", none},
                                                              {"files", files}})
                                                          .dump());
}

void save_checkpoint(CheckpointMirror& mirror, std::int64_t step, const std::filesystem::path& folder) {
  const std::filesystem::path checkpoint = folder / step_name(step);
  for (const std::string& name : shards()) mirror.upload(step, checkpoint, {name});  // a rank each
  mirror.commit(checkpoint);
}

void call(Store& store, const std::string& verb, const std::string& name, const std::string& argument) {
  if (verb == "size") {
    const auto bytes = store.size(name);
    fmt::print("{}\n", bytes ? std::to_string(*bytes) : "none");
  } else if (verb == "read") {
    fmt::print("{}", store.read(name, argument.empty() ? 1 << 20 : std::stoull(argument)));
  } else if (verb == "fetch") {  // to FILE or FILE:SECONDS
    const auto colon = argument.rfind(':');
    store.fetch(name, argument.substr(0, colon),
                colon == std::string::npos ? 60 : std::stod(argument.substr(colon + 1)));
  } else if (verb == "put" || verb == "put_new") {
    store.put(name, argument, verb == "put_new");
  } else if (verb == "upload") {
    store.upload(argument, name);
  } else if (verb == "list") {
    for (const StoreEntry& file : store.list(name)) fmt::print("{} {}\n", file.bytes, file.name);
  } else if (verb == "remove") {
    store.remove(name);
  } else if (verb == "abandon") {
    store.abandon_uploads(name);
  } else if (verb == "make_checkpoint") {
    make_checkpoint(std::stoll(name), argument);
  } else if (verb == "start_run") {
    CheckpointMirror(store).start(std::stoll(name));
  } else if (verb == "save_checkpoint") {
    CheckpointMirror mirror(store);
    save_checkpoint(mirror, std::stoll(name), argument);
  } else if (verb == "retain") {
    CheckpointMirror(store).retain(std::stoll(name), std::stoll(argument));
  } else if (verb == "restore") {
    const auto fetched = CheckpointMirror(store).fetch_newest(argument, [](std::int64_t step, const std::string& why) {
      std::fprintf(stderr, "step %lld: %s\n", static_cast<long long>(step), why.c_str());
    });
    fmt::print("{}\n", fetched ? fetched->filename().string() : "none");
  } else {
    throw_error(Code::usage, "found {}, allowed are the calls of a store", verb);
  }
}

}  // namespace

/// storage_probe ADDRESS VERB NAME ARGUMENT [VERB NAME ARGUMENT ...]
int main(int argc, char** argv) {
  try {
    const auto store = open_store(argv[1]);
    for (int i = 2; i + 2 < argc; i += 3) call(*store, argv[i], argv[i + 1], argv[i + 2]);
    return 0;
  } catch (const StoreFailed& e) {
    std::fprintf(stderr, "%s: %s\n", word(e.kind()), e.what());
    return e.exit_status();
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return e.exit_status();
  }
}
