// libcurl, loaded with the first request: commands without requests neither load it and its thirty dependencies, nor
// need it installed.
#pragma once
#include <curl/curl.h>

#include <memory>

namespace wt {

struct CurlLibrary {
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
};

/// Throws Error{runtime} with the package's name where the library cannot be loaded.
const CurlLibrary& curl_library();

struct FreeCurl {
  void operator()(CURL* handle) const { curl_library().easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_library().slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, FreeCurl>;

}  // namespace wt
