// One call of a store from the command line, for tests of the storage client against servers in Python: prints what it
// gives to standard output, an error and its kind to standard error, and ends with the error's status.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "configs/spec/support/text.hpp"
#include "trainer/storage/store.hpp"

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
  } else if (verb == "sleep") {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(name)));
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
