// Files of Megatron-LM other than scripts: MODEL_ARGS of its functional tests and of its model zoo, whose entries are
// flags, and the file of --yaml-cfg, whose entries are fields of its dataclasses.
#include "planner/recipes/megatron_yaml.hpp"

#include <algorithm>
#include <sstream>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

/// Fills in ${NAME} and $NAME of the given environment; others stay, and an error about them says so.
std::string with_variables(const std::string& text, const std::map<std::string, std::string>& variables,
                           const std::string& key, Settings& out) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find("${", at), end = begin == std::string::npos ? begin : text.find('}', begin);
    if (end == std::string::npos) return made + text.substr(at);
    const std::string name = text.substr(begin + 2, end - begin - 2);
    const auto found = variables.find(name);
    made +=
        text.substr(at, begin - at) + (found == variables.end() ? text.substr(begin, end + 1 - begin) : found->second);
    if (found == variables.end())
      out.hint(key, fmt::format("the file does not say {}; give --env {}=VALUE", name, name));
    at = end + 1;
  }
  return made;
}

/// "a b" is two values of a flag, as on a command line; a list in parentheses is one.
Settings::Value flag_value(const std::string& text) {
  std::string bare = text;
  std::erase(bare, '\\');  // which the tests' runner hands to a shell
  if (bare.starts_with("[") && bare.ends_with("]")) bare = bare.substr(1, bare.size() - 2);
  if (bare == "true" || bare == "True") return true;
  if (bare.starts_with("(") || bare.find('|') != std::string::npos) return bare;
  std::istringstream parts(bare);
  Settings::Value out = Settings::Value::array();
  for (std::string part; parts >> part;) out.push_back(scalar_of_word(part));
  return out.size() == 1 ? out[0] : out;
}

}  // namespace

bool is_megatron_yaml(const Settings& settings) {
  return settings.has_under("MODEL_ARGS") ||
         (settings.has_under("language_model") && settings.has_under("model_parallel"));
}

Settings megatron_from_yaml(const Settings& file, const RecipeSource& source) {
  Settings out(file.origin());
  for (const std::string& note : file.notes()) out.note(note);
  constexpr const char* kArguments = "MODEL_ARGS.";
  const bool arguments = file.has_under("MODEL_ARGS");
  for (const auto& [key, value] : file.entries()) {
    if (arguments && !key.starts_with(kArguments)) continue;  // METRICS, LAUNCHER, ENV_VARS
    std::string name = arguments ? key.substr(std::string(kArguments).size()) : key.substr(key.rfind('.') + 1);
    if (arguments && !name.starts_with("--"))
      file.fail(key, "found no flag, needs one of Megatron-LM such as --num-layers");
    name.erase(0, arguments ? 2 : 0);
    std::ranges::replace(name, '_', '-');
    if (value.is_null()) continue;
    if (arguments)
      out.put(name, value.is_string()
                        ? flag_value(with_variables(value.get<std::string>(), source.variables, name, out))
                        : value);
    else
      put_megatron_field(key.substr(key.rfind('.') + 1), value, out);
  }
  return out;
}

}  // namespace wt
