// Controls above a table of rows that were computed before: the reader picks a row, a price and a limit. Every number
// shown is a row's, or one times the price. In the page before report.js.
const explore = (() => {
  'use strict';
  const {number, show} = chartText;

  function element(name, attributes, ...children) {
    const out = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
    out.append(...children);
    return out;
  }

  // The values of a column, each once: numbers in their order, words as the rows have them.
  function valuesOf(table, column) {
    const cells = new Map(table.rows.map(row => [row[column].text, row[column]]));
    return [...cells.values()].sort((a, b) => (a.number ?? 0) - (b.number ?? 0)).map(cell => cell.text);
  }

  // One stop of the slider a value: arrow keys move it.
  function slider(id, column, values, at, moved) {
    const output = element('output', {for: id
    });
    const input = element('input', {type: 'range', id, min: 0, max: values.length - 1, step: 1});
    const tell = () => {
      output.textContent = values[+input.value];
      input.setAttribute('aria-valuetext', output.textContent + (column.unit ? ' ' + column.unit : ''));
    };
    input.value = at;
    input.disabled = values.length < 2;
    input.addEventListener('input', () => {
      tell();
      moved();
    });
    tell();
    return {
      row: element(
          'div', {},
          element(
              'label',
              {for: id
              },
              column.name),
          input, output),
      value: () => values[+input.value]
    };
  }

  function amount(id, label, value, moved) {
    const input = element('input', {type: 'number', id, min: 0, step: 'any', inputmode: 'decimal'});
    if (value !== undefined) input.value = number.format(value).replaceAll(',', '');
    input.addEventListener('input', moved);
    return {
      row: element(
          'div', {},
          element(
              'label',
              {for: id
              },
              label),
          input),
      value: () => parseFloat(input.value)
    };
  }

  const money = (hours, price, currency) => number.format(hours * price) + (currency ? ' ' + currency : '');

  // What is said of a row: pairs of a name and a text, and whether the limit is kept.
  function facts(spec, row, price, limit, unit) {
    const of = column => row[column].number, text = column => row[column].text + ' ' + unit, words = row[spec.words].text;
    if (of(spec.middle) === undefined) return {entries: [['no plan', words]], status: 'bad'};
    const range = text(spec.middle) + '; ' + row[spec.low].text + ' to ' + text(spec.high) + ' in 90 % of the simulated runs';
    const kept = of(spec.high) <= limit;
    return {
      entries: [
        ['finish', range],
        [
          'deadline',
          Number.isFinite(limit) ? (kept ? '\u2713 met: ' : '\u2717 missed: ') + '95 % of the runs take at most ' +
                  text(spec.high) :
                                   'none is given'
        ],
        [
          'cost',
          Number.isFinite(price) ?
              money(of(spec.paid), price, spec.currency) + ' (P50; P95 ' +
                  money(of(spec.paid_high), price, spec.currency) + ')' :
              'no price is given; ' + show(of(spec.paid)) + ' GPU-hours (P50; P95 ' + show(of(spec.paid_high)) + ')'
        ],
        ['layout', words]
      ],
      status: Number.isFinite(limit) ? (kept ? 'good' : 'bad') : ''
    };
  }

  // The picked row's neighbours along the choice with the most values: bars with their interval, and the limit.
  function chartOf(table, spec, along, rows, limit) {
    const planned = rows.filter(row => row[spec.middle].number !== undefined);
    const numbers = column => planned.map(row => row[column].number), unit = table.columns[spec.middle].unit;
    const chart = {
      kind: 'bar',
      labels: planned.map(row => row[along].text),
      series: [{
        name: table.columns[spec.middle].name,
        values: numbers(spec.middle),
        low: numbers(spec.low),
        high: numbers(spec.high)
      }],
      label_axis: table.columns[along].name,
      value_axis: table.columns[spec.middle].name,
      unit
    };
    if (Number.isFinite(limit)) chart.line = {value: limit, label: 'deadline'};
    return chart;
  }

  // `draw` puts a chart on a canvas, and gives what takes it off.
  return (box, table, draw) => {
    const spec = table.explore, unit = table.columns[spec.middle].unit, id = name => box.dataset.explore + '-' + name;
    const rows = [...box.closest('.item').querySelectorAll('tbody tr')];
    const said = element('dl', {}), result = element('div', {class: 'result', 'aria-live': 'polite'}, said);
    const canvas =
        element('canvas', {role: 'img', 'aria-label': 'finish by number; the numbers are in the table below'});
    let remove = () => {};
    const update = () => {
      const matches = (row, choices) => choices.every(({column, control}) => row[column].text === control.value());
      const at = table.rows.findIndex(row => matches(row, controls));
      const {entries, status} = at < 0 ? {entries: [['no plan', 'these were not planned together']], status: 'bad'} :
                                         facts(spec, table.rows[at], price.value(), limit.value(), unit);
      said.replaceChildren(...entries.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]));
      result.className = 'result ' + status;
      rows.forEach(
          (row, i) => i === at ? row.setAttribute('aria-current', 'true') : row.removeAttribute('aria-current'));
      remove();
      const others = controls.filter(each => each.column !== along);
      remove = draw(canvas, chartOf(table, spec, along, table.rows.filter(row => matches(row, others)), limit.value()));
    };
    const controls = spec.choices.map(column => {
      const values = valuesOf(table, column), at = values.indexOf(table.rows[spec.start][column].text);
      return {column, count: values.length, control: slider(id(column), table.columns[column], values, at, update)};
    });
    const along = controls.reduce((most, each) => each.count > most.count ? each : most).column;
    const price = amount(
        id('price'), 'price of a GPU-hour' + (spec.currency ? ' [' + spec.currency + ']' : ''), spec.price, update);
    const limit = amount(id('limit'), 'deadline [' + unit + ']', spec.limit, update);
    box.append(
        element(
            'form', {}, ...controls.filter(each => each.count > 1).map(each => each.control.row), price.row, limit.row),
        result, element('div', {class: 'chart', style: 'height:' + (table.rows.length > 1 ? '300px' : '0')}, canvas));
    box.querySelector('form').addEventListener('submit', event => event.preventDefault());
    update();
  };
})();
