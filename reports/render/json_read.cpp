#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

template <typename Enum>
Enum choice(const JsonReader& reader, std::initializer_list<Enum> all) {
  std::string allowed;
  const std::string found = reader.string();
  for (Enum one : all) {
    if (to_string(one) == found) return one;
    allowed += (allowed.empty() ? "" : ", ") + to_string(one);
  }
  reader.fail("'" + found + "'", allowed);
}

Status status(const JsonReader& r) { return choice(r, {Status::none, Status::good, Status::warn, Status::bad}); }
Evidence evidence(const JsonReader& r) {
  return choice(r, {Evidence::measured, Evidence::published, Evidence::derived, Evidence::assumed});
}

std::vector<double> numbers(const JsonReader& reader) {
  std::vector<double> out;
  for (const JsonReader& one : reader.elements())
    out.push_back(one.value().is_null() ? std::numeric_limits<double>::quiet_NaN() : one.finite());
  return out;
}

Cell cell(const JsonReader& r) {
  r.allow_only({"text", "number", "evidence", "status", "heat"});
  Cell out(r.at("text").string());
  if (r.has("number")) out.number = r.at("number").finite();
  if (r.has("evidence")) out.evidence = evidence(r.at("evidence"));
  if (r.has("status")) out.status = status(r.at("status"));
  if (r.has("heat")) out.heat = r.at("heat").finite();
  return out;
}

std::size_t index_of(const JsonReader& r) {
  if (r.integer() < 0) r.fail("a negative index", "0 and up");
  return static_cast<std::size_t>(r.integer());
}

Explore explore(const JsonReader& r) {
  r.allow_only(
      {"choices", "middle", "low", "high", "paid", "paid_high", "words", "start", "currency", "price", "limit"});
  Explore out{.middle = index_of(r.at("middle")),
              .low = index_of(r.at("low")),
              .high = index_of(r.at("high")),
              .paid = index_of(r.at("paid")),
              .paid_high = index_of(r.at("paid_high")),
              .words = index_of(r.at("words")),
              .start = index_of(r.at("start")),
              .currency = r.at("currency").string()};
  for (const JsonReader& choice : r.at("choices").elements()) out.choices.push_back(index_of(choice));
  if (r.has("price")) out.price = r.at("price").finite();
  if (r.has("limit")) out.limit = r.at("limit").finite();
  return out;
}

Table table(const JsonReader& r) {
  r.allow_only({"type", "title", "columns", "rows", "note", "explore"});
  Table out{r.at("title").string(), {}, {}, r.at("note").string()};
  if (r.has("explore")) out.explore = explore(r.at("explore"));
  for (const JsonReader& column : r.at("columns").elements()) {
    column.allow_only({"name", "unit", "align"});
    out.columns.push_back({column.at("name").string(), column.at("unit").string(),
                           choice(column.at("align"), {Align::left, Align::right})});
  }
  for (const JsonReader& row : r.at("rows").elements()) {
    out.rows.emplace_back();
    for (const JsonReader& one : row.elements()) out.rows.back().push_back(cell(one));
  }
  return out;
}

Series series(const JsonReader& r) {
  r.allow_only({"name", "values", "low", "high", "spans", "evidence", "points"});
  Series out{.name = r.at("name").string(), .values = numbers(r.at("values"))};
  if (r.has("low")) out.low = numbers(r.at("low"));
  if (r.has("high")) out.high = numbers(r.at("high"));
  if (r.has("evidence")) out.evidence = evidence(r.at("evidence"));
  if (r.has("points")) out.points = r.at("points").boolean();
  if (r.has("spans"))
    for (const JsonReader& span : r.at("spans").elements()) {
      span.allow_only({"row", "start", "end", "name"});
      if (span.at("row").integer() < 0) span.at("row").fail("a negative row", "0 and up");
      out.spans.push_back({static_cast<std::size_t>(span.at("row").integer()), span.at("start").finite(),
                           span.at("end").finite(), span.at("name").string()});
    }
  return out;
}

Chart chart(const JsonReader& r) {
  r.allow_only({"type", "kind", "title", "unit", "labels", "series", "label_axis", "value_axis", "x", "line", "marks",
                "marks_name", "horizontal", "note", "named_x"});
  using enum ChartKind;
  Chart out;
  out.kind = choice(r.at("kind"), {bar, grouped_bar, stacked_bar, ChartKind::line, waterfall, tornado, timeline});
  out.title = r.at("title").string();
  out.unit = r.at("unit").string();
  out.labels = r.at("labels").strings();
  for (const JsonReader& one : r.at("series").elements()) out.series.push_back(series(one));
  out.label_axis = r.at("label_axis").string();
  out.value_axis = r.at("value_axis").string();
  if (r.has("x")) out.x = numbers(r.at("x"));
  if (r.has("named_x")) out.named_x = r.at("named_x").boolean();
  if (r.has("marks"))
    for (const JsonReader& mark : r.at("marks").elements())
      out.marks.push_back({mark.at("x").finite(), mark.at("label").string()});
  if (r.has("marks_name")) out.marks_name = r.at("marks_name").string();
  if (r.has("line")) out.line = {r.at("line").at("value").finite(), r.at("line").at("label").string()};
  out.horizontal = r.at("horizontal").boolean();
  out.note = r.at("note").string();
  return out;
}

KeyValues key_values(const JsonReader& r) {
  KeyValues out{r.at("title").string(), {}};
  for (const JsonReader& entry : r.at("entries").elements()) {
    entry.allow_only({"key", "value"});
    out.entries.emplace_back(entry.at("key").string(), cell(entry.at("value")));
  }
  return out;
}

Item item(const JsonReader& r) {
  const std::string type = r.at("type").string();
  if (type == "table") return table(r);
  if (type == "chart") return chart(r);
  if (type == "key_values") {
    r.allow_only({"type", "title", "entries"});
    return key_values(r);
  }
  if (type != "callout") r.at("type").fail("'" + type + "'", "table, chart, key_values, callout");
  r.allow_only({"type", "status", "title", "text"});
  return Callout{status(r.at("status")), r.at("title").string(), r.at("text").string()};
}

}  // namespace

Report report_from_json(const nlohmann::json& document, const std::string& origin) {
  const JsonReader root(document, origin);
  root.allow_only({"schema", "title", "answer", "answer_range", "status", "sections", "provenance", "payload"});
  if (const std::string schema = root.at("schema").string(); schema != "windtunnel.report/1")
    root.at("schema").fail("'" + schema + "'", "windtunnel.report/1");
  Report report{.title = root.at("title").string(),
                .answer = root.at("answer").string(),
                .answer_range = root.at("answer_range").string(),
                .status = status(root.at("status"))};
  for (const JsonReader& one : root.at("sections").elements()) {
    one.allow_only({"id", "title", "paragraphs", "items", "folded"});
    Section section{one.at("id").string(), one.at("title").string(), one.at("paragraphs").strings(), {}};
    for (const JsonReader& entry : one.at("items").elements()) section.items.push_back(item(entry));
    if (one.has("folded")) section.folded = one.at("folded").boolean();
    report.sections.push_back(std::move(section));
  }
  root.at("provenance").allow_only({"title", "entries"});
  report.provenance = key_values(root.at("provenance"));
  report.payload = root.at("payload").value();
  try {
    check(report);
  } catch (const Error& e) {  // check() reports a bug of ours; in a file it is the user's input
    throw_usage("{}: {}", origin, e.what());
  }
  return report;
}

}  // namespace wt
