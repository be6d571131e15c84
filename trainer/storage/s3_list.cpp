#include "trainer/storage/s3_list.hpp"

#include <cctype>
#include <cstdlib>
#include <pugixml.hpp>

#include "configs/base/error.hpp"

namespace wt {
namespace {

/// "%2Fa+b" -> "/a b", the encoding of names in lists with encoding-type=url.
std::string url_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto hex_digit = [&](std::size_t at) {
      return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (text[i] == '%' && hex_digit(i + 1) && hex_digit(i + 2)) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

bool is_store_name(const std::string& name) {
  try {
    check_store_name("", name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

S3ListPage s3_list_page(const pugi::xml_node& result, const std::string& root, const std::string& prefix) {
  S3ListPage page;
  const bool encoded = std::string(result.child_value("EncodingType")) == "url";
  for (const pugi::xml_node file : result.children("Contents")) {
    std::string key = file.child_value("Key");
    if (encoded) key = url_decoded(key);
    if (!key.starts_with(root + prefix)) continue;
    std::string name = key.substr(root.size());
    if (is_store_name(name))
      page.files.push_back({std::move(name), std::strtoull(file.child_value("Size"), nullptr, 10)});
  }
  page.next = result.child_value("NextContinuationToken");
  page.is_last = std::string(result.child_value("IsTruncated")) != "true";
  return page;
}

}  // namespace wt
