#include "planner/recipes/known_words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>

#include "configs/base/enum_words.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

const std::vector<std::string> kVerdicts{"modelled", "assumed", "refused", "learning", "ignored"};

std::string text_of(const Settings::Value& value) {
  return value.is_string() ? shortened(value.get<std::string>()) : shortened(value.dump());
}

/// Numbers are equal across their kinds: 1 and 1.0.
bool is_usual(const KnownWords::Word& word, const Settings::Value& value) {
  return !word.usual.is_null() && word.usual == value;
}

}  // namespace

KnownWords::KnownWords(const std::string& text, const std::string& origin) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("words"))
    throw_usage("{}: found other text, needs a map with version, words and others; write it with planner/recipes/words",
                origin);
  version_ = document.value("version", origin);
  for (const auto& [key, entry] : document.at("words").items()) {
    const std::string is = entry.value("is", "");
    const auto verdict = enumerator_of<WordVerdict>(is, kVerdicts);
    if (!verdict) throw_usage("{}: {}: found '{}', allowed are {}", origin, key, is, fmt::join(kVerdicts, ", "));
    Word word{.verdict = *verdict,
              .usual = entry.value("usual", Settings::Value()),
              .choices = entry.value("choices", Settings::Value()),
              .why = entry.value("why", ""),
              .release = entry.value("release", ""),
              .takes = entry.value("takes", "")};
    words_.emplace(key, std::move(word));
    names_.push_back(key);
  }
  const nlohmann::json others = document.value("others", nlohmann::json::object());
  for (const auto& [key, owner] : others.items()) others_[key] = owner;
}

const KnownWords& KnownWords::of(const std::string& format) {
  static std::map<std::string, std::unique_ptr<KnownWords>> all;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<KnownWords>& words = all[format];
  if (words == nullptr) {
    const std::filesystem::path file = configs_folder() / "words" / (format + ".json");
    words = std::make_unique<KnownWords>(read_file(file, "the words of a trainer's format"), file.string());
  }
  return *words;
}

bool KnownWords::has_under(const std::string& section) const {
  const auto first = words_.lower_bound(section + ".");
  return first != words_.end() && first->first.starts_with(section + ".");
}

const KnownWords::Word* KnownWords::find(const std::string& key) const {
  if (const auto found = words_.find(key); found != words_.end()) return &found->second;
  for (std::size_t dot = key.rfind('.'); dot != std::string::npos && dot > 0; dot = key.rfind('.', dot - 1)) {
    const std::string section = key.substr(0, dot);
    if (const auto found = words_.find(section + ".*"); found != words_.end()) return &found->second;
    if (has_under(section)) return nullptr;  // a section that lists its words has no others
  }
  return nullptr;
}

void KnownWords::refuse_unknown(const Settings& settings, const std::string& word) const {
  const std::string key = shortened(word);  // a distance takes the product of the lengths
  if (const auto other = others_.find(key); other != others_.end())
    settings.fail(key,
                  "found a word of {}, needs one of {}; remove it, or write what it means in the words of the latter",
                  other->second, version_);
  settings.fail(key, "found a word that {} does not have{}, needs one of its own; correct or remove it", version_,
                did_you_mean(key, names_));
}

void KnownWords::check_value(const Settings& settings, const Settings::Entry& entry, const Word& word) const {
  if (word.takes == "nothing" && !entry.value.is_boolean())
    settings.fail(entry.key, "found \"{}\" behind it, takes nothing; remove it", text_of(entry.value));
  if (word.takes == "one" && entry.value.is_array())
    settings.fail(entry.key, "found {}, needs one value", text_of(entry.value));
  if (word.choices.is_array() && word.verdict != WordVerdict::ignored) {
    const Settings::Value all = entry.value.is_array() ? entry.value : Settings::Value::array({entry.value});
    for (const Settings::Value& one : all)
      if (std::ranges::find(word.choices, one) == word.choices.end())
        settings.fail(entry.key, "found {}, allowed are {}", text_of(one), fmt::join(word.choices, ", "));
  }
}

void KnownWords::refuse(const Settings& settings, const Settings::Entry& entry, const Word& word) const {
  if (word.verdict == WordVerdict::refused && !is_usual(word, entry.value))
    settings.fail(entry.key, "found {}, {}", text_of(entry.value), word.why);
}

/// Flags that are there only if an unknown condition holds matter where they change more than logging.
void KnownWords::check_optional(const Settings& settings) const {
  for (const auto& [words, condition] : settings.optional()) {
    std::istringstream parts(words);
    for (std::string part; parts >> part;) {
      if (!part.starts_with("--")) continue;
      std::string key = part.substr(2, part.find('=') - 2);
      std::ranges::replace(key, '_', '-');
      const Word* word = find(key);
      if (word == nullptr) refuse_unknown(settings, key);
      if (word->verdict != WordVerdict::ignored && word->verdict != WordVerdict::learning)
        settings.fail(key,
                      "found it only if {}, which is not known; give --env NAME=VALUE for what it asks, or run the "
                      "script's own words with --evaluate",
                      condition);
    }
  }
}

void KnownWords::check(const Settings& settings) const {
  check_optional(settings);
  for (const Settings::Entry& entry : settings.entries())  // a refused word explains unknown ones beside it
    if (const Word* word = find(entry.key); word != nullptr && !entry.value.is_null()) refuse(settings, entry, *word);
  for (const Settings::Entry& entry : settings.entries()) {
    if (entry.key.starts_with("launch.")) continue;  // what the launcher says, not the format
    const Word* word = find(entry.key);
    if (word == nullptr && entry.value.empty() && has_under(entry.key)) continue;  // a section without keys
    if (word == nullptr) refuse_unknown(settings, entry.key);
    if (!entry.value.is_null()) check_value(settings, entry, *word);
  }
}

void KnownWords::list_unread(RecipeReading& reading) const {
  for (const auto& [words, condition] : reading.in.optional())
    reading.ignored.push_back(fmt::format("{}: found only if {}", words, condition));
  for (const Settings::Entry& entry : reading.in.entries()) {
    const Word* word = find(entry.key);
    if (reading.in.was_read(entry.key) || entry.value.is_null() || word == nullptr) continue;
    const std::string found = fmt::format("{}: found {}", entry.key, text_of(entry.value)),
                      why = word->why.empty() ? "" : "; " + word->why;
    if (is_usual(*word, entry.value))
      reading.ignored.push_back(found + ", which is the default");
    else if (word->verdict == WordVerdict::assumed)
      reading.assumed.push_back(found + why);
    else if (word->verdict == WordVerdict::learning)
      reading.learning.push_back(found + why);
    else
      reading.ignored.push_back(found + (word->verdict == WordVerdict::modelled ? "; no effect on this run" : why));
  }
}

}  // namespace wt
