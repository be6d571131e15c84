#include "trainer/storage/curl_library.hpp"

#include <dlfcn.h>

#include "configs/base/error.hpp"

namespace wt {
namespace {

CurlLibrary open_curl() {
  void* opened = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    throw_runtime("libcurl.so.4 cannot be opened ({}), network storage needs it; install libcurl4", dlerror());
  const auto find = [&]<class F>(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(opened, name));
    if (function == nullptr)
      throw_runtime("libcurl.so.4 has no {}, needs libcurl 7.85 or newer; install libcurl4", name);
  };
  decltype(&curl_global_init) global_init = nullptr;
  CurlLibrary curl;
  find("curl_global_init", global_init);
  find("curl_easy_init", curl.easy_init);
  find("curl_easy_setopt", curl.easy_setopt);
  find("curl_easy_perform", curl.easy_perform);
  find("curl_easy_getinfo", curl.easy_getinfo);
  find("curl_easy_reset", curl.easy_reset);
  find("curl_easy_cleanup", curl.easy_cleanup);
  find("curl_easy_strerror", curl.easy_strerror);
  find("curl_slist_append", curl.slist_append);
  find("curl_slist_free_all", curl.slist_free_all);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    throw_runtime("libcurl.so.4 cannot be initialised, network storage needs it; reinstall libcurl4");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary curl = open_curl();
  return curl;
}

}  // namespace wt
