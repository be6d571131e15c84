// Turns the JSON twin in the page into Chart.js configurations. Chart.js owns every position; nothing is computed here
// beyond choosing colours and axes.
(function() {
'use strict';
const {number, brief, show, titled, valueLabels, seriesName, narrow, broken, axisTitle} = chartText;
const report = JSON.parse(document.getElementById('report-data').textContent);
const ink = '#17202b', soft = '#4d5967', grid = '#e3e8ed';
// Told apart with every common colour vision, and at least 3:1 against white.
const palette = ['#1b5e9b', '#d1660f', '#0f8f70', '#9b4f96', '#a3790a', '#3a8fbb', '#b23a5b', '#5f6b7a'];
const kTotal = '#3f4d5c', kLoss = '#c8501e', kGain = '#1b5e9b';
const faded = color => color + '40';

// A series has the colour that its name had in the charts before, unless another one of its chart has it.
const known = new Map();
function colours(chart) {
  const free = new Set(palette);
  const take = (name, wanted) => {
    const colour = free.has(wanted) ? wanted : [...free][0] || palette[0];
    free.delete(colour);
    if (!known.has(name)) known.set(name, colour);
    return colour;
  };
  const of = new Map(chart.series.filter(series => known.has(series.name))
                         .map(series => [series.name, take(series.name, known.get(series.name))]));
  return chart.series.map(series => of.get(series.name) || take(series.name));
}

// Twice the pixels at least: a page that is printed should be sharp.
Object.assign(Chart.defaults, {
  animation: false,
  color: ink,
  maintainAspectRatio: false,
  devicePixelRatio: Math.max(2, window.devicePixelRatio || 1)
});
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
Chart.defaults.font.size = 13;
Chart.defaults.plugins.legend.maxHeight = 400;
Object.assign(Chart.defaults.plugins.legend.labels, {boxWidth: 10, boxHeight: 10, padding: 14, usePointStyle: true});
Chart.defaults.elements.bar.pointStyle = 'rect';
Chart.defaults.plugins.legend.position = 'top';
Chart.defaults.plugins.legend.align = 'start';

function base(chart, horizontal) {
  const label = {
    type: 'category',
    labels: chart.labels,
    grid: {display: false},
    offset: true,
    title: {display: !!chart.label_axis, text: chart.label_axis, color: soft},
    ticks: {
      autoSkip: chart.labels.length > 40,
      maxRotation: 50,
      callback(index) { return broken(this.getLabelForValue(index), narrow(this.chart) ? 16 : 38); }
    }
  };
  const value = {
    type: 'linear',
    grid: {color: grid},
    border: {display: false},
    stacked: false,
    beginAtZero: true,
    title: {display: true, text: axisTitle(titled(chart.value_axis, chart.unit)), color: soft},
    ticks: {callback: v => number.format(v)}
  };
  label.axis = horizontal ? 'y' : 'x';
  value.axis = horizontal ? 'x' : 'y';
  return {
    type: 'bar',
    plugins: [valueLabels],
    data: {datasets: []},
    options: {
      indexAxis: horizontal ? 'y' : 'x',
      scales: {label, value},
      layout: {padding: {top: 4}},
      plugins: {
        legend: {
          display: chart.series.length > 1 || !!chart.line || !!chart.marks,
          labels: {filter: item => !item.text.startsWith('\u0000')}
        },
        tooltip: {filter: item => !(item.dataset.label || '').startsWith('\u0000')}
      }
    }
  };
}

function onAxes(dataset, horizontal) {
  return Object.assign(
      dataset, horizontal ? {xAxisID: 'value', yAxisID: 'label'} : {xAxisID: 'label', yAxisID: 'value'});
}

// A limit from edge to edge: a line over a hidden axis from 0 to 1 beside the labels' axis.
function addLine(config, chart, horizontal) {
  if (!chart.line) return;
  config.options.scales
      .edge = {type: 'linear', axis: horizontal ? 'y' : 'x', min: 0, max: 1, display: false, offset: false};
  const at = chart.line.value;
  config.data.datasets.push({
    type: 'line',
    label: chart.line.label + ': ' + show(at, chart.unit),
    order: -1,
    indexAxis: horizontal ? 'y' : 'x',
    borderColor: ink,
    backgroundColor: ink,
    borderWidth: 2,
    borderDash: [6, 4],
    pointRadius: 0,
    pointHitRadius: 0,
    pointStyle: 'line',
    clip: false,
    data: horizontal ? [{x: at, y: 0}, {x: at, y: 1}] : [{x: 0, y: at}, {x: 1, y: at}],
    [horizontal ? 'yAxisID' : 'xAxisID']: 'edge',
    [horizontal ? 'xAxisID' : 'yAxisID']: 'value'
  });
}

// What happened at places of the x axis: lines from edge to edge over a hidden axis from 0 to 1.
function addMarks(config, chart) {
  if (!chart.marks) return;
  config.options.scales.markEdge = {type: 'linear', axis: 'y', min: 0, max: 1, display: false};
  config.data.datasets.push({
    type: 'line',
    label: chart.marks_name + ' (' + chart.marks.length + ')',
    order: 4,
    borderColor: soft,
    backgroundColor: soft,
    borderWidth: 1,
    borderDash: [3, 3],
    pointRadius: 0,
    pointStyle: 'line',
    spanGaps: false,
    marks: chart.marks.map(mark => mark.label),
    data: chart.marks.flatMap(mark => [{x: mark.x, y: 0}, {x: mark.x, y: 1}, {x: mark.x, y: NaN}]),
    xAxisID: 'label',
    yAxisID: 'markEdge'
  });
}

function bars(chart) {
  const horizontal = chart.horizontal, stacked = chart.kind === 'stacked_bar';
  const config = base(chart, horizontal);
  // The label axis stacks, so that a whisker stands on its bar; the value axis only where bars add up.
  config.options.scales.label.stacked = true;
  config.options.scales.value.stacked = stacked;
  const few = chart.labels.length * chart.series.length <= 24, colour = colours(chart);
  chart.series.forEach((series, s) => {
    const ranged = series.low && !stacked;
    config.data.datasets.push(onAxes(
        {
          label: seriesName(series),
          data: series.values,
          stack: stacked ? 'all' : 's' + s,
          backgroundColor: colour[s],
          borderColor: '#fff',
          borderWidth: stacked ? 1 : 0,
          maxBarThickness: 84,
          categoryPercentage: .64,
          barPercentage: .92,
          order: 2,
          written: few && !stacked ? series.values.map(v => v === null ? '' : number.format(v)) : null,
          writtenAbove: ranged ? series.high : null
        },
        horizontal));
    if (ranged)
      config.data.datasets.push(onAxes(
          {
            label: '\u0000range',
            data: series.low.map((v, i) => v === null || series.high[i] === null ? null : [v, series.high[i]]),
            stack: 's' + s,
            backgroundColor: ink,
            maxBarThickness: 2,
            categoryPercentage: .64,
            barPercentage: .92,
            order: 1,
            borderSkipped: false
          },
          horizontal));
  });
  if (horizontal && few)
    config.options.layout.padding = {right: 56, top: 4};
  else
    config.options.scales.value.grace = '6%';
  config.options.plugins.tooltip.callbacks = {
    label(item) {
      const series = chart.series.find(one => seriesName(one) === item.dataset.label), i = item.dataIndex;
      if (!series) return item.dataset.label;
      const range =
          series.low && series.low[i] !== null ? ' (' + show(series.low[i]) + ' to ' + show(series.high[i]) + ')' : '';
      return item.dataset.label + ': ' + show(series.values[i], chart.unit) + range;
    }
  };
  addLine(config, chart, horizontal);
  return config;
}

function lines(chart) {
  const config = base(chart, false), overX = !!chart.x, colour = colours(chart);
  config.type = 'line';
  config.options.interaction = {mode: 'nearest', intersect: false};
  config.options.scales.value.beginAtZero = false;
  config.options.scales.label.offset = false;
  if (overX)
    config.options.scales.label = {
      type: 'linear',
      axis: 'x',
      grid: {display: false},
      title: {display: !!chart.label_axis, text: chart.label_axis, color: soft},
      ticks: chart.named_x ? {autoSkip: true, maxRotation: 50, callback: v => chart.labels[chart.x.indexOf(v)]} :
                             {callback: v => number.format(v)}
    };
  if (chart.named_x) config.options.scales.label.afterBuildTicks = axis => axis.ticks = chart.x.map(value => ({value}));
  const points = values => overX ? values.map((v, i) => ({x: chart.x[i], y: v})) : values;
  chart.series.forEach((series, s) => {
    const color = colour[s], many = series.values.length > 60;
    config.data.datasets.push(onAxes(
        {
          label: seriesName(series),
          data: points(series.values),
          borderColor: color,
          backgroundColor: color,
          borderWidth: 2,
          pointRadius: series.points ? 2.5 :
              many                   ? 0 :
                                       3,
          showLine: !series.points,
          pointStyle: 'circle',
          tension: 0,
          spanGaps: false
        },
        false));
    if (!series.low) return;
    const band = {borderWidth: 0, pointRadius: 0, pointHitRadius: 0, backgroundColor: faded(color), order: 3};
    config.data.datasets.push(onAxes(Object.assign({label: '\u0000low', data: points(series.low)}, band), false));
    config.data.datasets.push(
        onAxes(Object.assign({label: '\u0000high', data: points(series.high), fill: '-1'}, band), false));
  });
  config.options.plugins.tooltip.callbacks = {
    label: item => item.dataset.marks ? item.dataset.marks[Math.floor(item.dataIndex / 3)] :
                                        item.dataset.label + ': ' + show(item.parsed.y, chart.unit)
  };
  addMarks(config, chart);
  addLine(config, chart, false);
  return config;
}

function floating(series) {
  return series.values.map(
      (v, i) => series.low[i] === null || series.high[i] === null ? null : [series.low[i], series.high[i]]);
}

function waterfall(chart) {
  const config = base(chart, true), series = chart.series[0] || {name: '', values: [], low: [], high: []};
  const last = series.values.length - 1;
  const total = i => i === 0 || i === last;
  // Where all changes are small beside the totals, the axis starts shortly below them, and says so.
  const ends =
      series.values.length ? [series.values[last], ...series.low.filter((v, i) => v !== null && !total(i))] : [];
  const lowest = Math.min(...ends), highest = Math.max(...series.high || []);
  if (Number.isFinite(lowest) && lowest > .8 * highest) {
    const step = Math.pow(10, Math.floor(Math.log10(highest - lowest || 1)));
    const start = Math.max(0, Math.floor((lowest - (highest - lowest) / 4) / step) * step);
    config.options.scales.value.min = start;
    config.options.scales.value.title.text =
        axisTitle(titled(chart.value_axis, chart.unit) + ', axis starts at ' + show(start));
  }
  config.data.datasets.push(onAxes(
      {
        label: series.name,
        data: floating(series),
        borderSkipped: false,
        maxBarThickness: 24,
        backgroundColor: series.values.map(
            (v, i) => total(i) ? kTotal :
                v < 0          ? kLoss :
                                 kGain),
        written: series.values.map(
            (v, i) => total(i) ? show(v, chart.unit) :
                                 (v > 0 ? '+' : '') + brief.format(v) + (chart.unit ? ' ' + chart.unit : ''))
      },
      true));
  config.options.layout.padding = {right: 76, top: 4};
  config.options.plugins.legend.display = !!chart.line;
  config.options.plugins.tooltip.callbacks = {label: item => show(series.values[item.dataIndex], chart.unit)};
  addLine(config, chart, true);
  return config;
}

function tornado(chart) {
  const config = base(chart, true), at = chart.line ? chart.line.value : 0, colour = colours(chart);
  config.options.scales.label.stacked = true;
  config.options.scales.value.beginAtZero = false;
  config.options.layout.padding = {right: 28, top: 4};
  config.options.scales.value.grace = window.innerWidth < 560 ? '45%' : '22%';
  chart.series.forEach((series, s) => {
    const other = chart.series[1 - s];
    config.data.datasets.push(onAxes(
        {
          label: seriesName(series),
          data: floating(series),
          stack: 'both',
          borderSkipped: false,
          backgroundColor: colour[s],
          maxBarThickness: 22,
          order: 2,
          written: series.values.map((v, i) => {  // both on one side: the outer end is written
            const inner =
                other && (v - at) * (other.values[i] - at) > 0 && Math.abs(v - at) < Math.abs(other.values[i] - at);
            return v === null || v === at || inner ? '' : number.format(v);
          }),
          writtenLeft: series.values.map(v => v < at)
        },
        true));
  });
  config.options.plugins.tooltip.callbacks = {
    label: item => {
      const series = chart.series[item.datasetIndex];
      return series ? series.name + ': ' + show(series.values[item.dataIndex], chart.unit) : item.dataset.label;
    }
  };
  addLine(config, chart, true);
  return config;
}

function timeline(chart) {
  const config = base(chart, true), colour = colours(chart);
  config.options.scales.label.stacked = true;
  config.options.scales.label.ticks.autoSkip = false;
  config.options.scales.label.title.display = false;
  config.options.scales.label.grid = {display: true, color: '#eef1f4'};
  chart.series.forEach((series, s) => {
    config.data.datasets.push(onAxes(
        {
          label: seriesName(series),
          stack: 'all',
          borderSkipped: false,
          borderColor: '#fff',
          borderWidth: .5,
          categoryPercentage: 1,
          barPercentage: .72,
          maxBarThickness: 20,
          backgroundColor: colour[s],
          data: (series.spans ||
                 []).map(span => ({x: [span.start, span.end], y: chart.labels[span.row], name: span.name}))
        },
        true));
  });
  config.options.plugins.tooltip.callbacks = {
    title: items => items.length ? items[0].raw.name : '',
    label: item => item.raw.x ? show(item.raw.x[0]) + ' to ' + show(item.raw.x[1], chart.unit) + ', ' +
            show(item.raw.x[1] - item.raw.x[0], chart.unit) :
                                item.dataset.label
  };
  addLine(config, chart, true);
  return config;
}

const builders = {
  bar: bars,
  grouped_bar: bars,
  stacked_bar: bars,
  line: lines,
  waterfall,
  tornado,
  timeline
};
const charts = [];
let failed = 0;
document.querySelectorAll('canvas[data-chart]').forEach(canvas => {
  const [section, item] = canvas.dataset.chart.split('/').map(Number);
  const chart = report.sections[section].items[item], box = canvas.parentElement;
  // A folded section has no width yet. On a phone the legend has a line for each series, or nearly so, and labels
  // break.
  if ((box.offsetWidth || document.querySelector('main').offsetWidth) < 520) {
    const lines = Math.max(1, ...chart.labels.map(label => [broken(label, 16)].flat().length));
    const lying = chart.horizontal || ['waterfall', 'tornado', 'timeline'].includes(chart.kind);
    const more = 22 * Math.max(0, chart.series.length - 2) + (lying ? 13 * (lines - 1) * chart.labels.length : 0);
    box.style.height = box.offsetHeight + more + 'px';
  }
  try {
    charts.push(new Chart(canvas, builders[chart.kind](chart)));
  } catch (error) {  // the numbers stay: they are in the table below
    failed += 1;
    console.error(chart.title, error);
    const item = canvas.closest('.item');
    box.remove();
    item.querySelector('details').open = true;
  }
});
document.querySelectorAll('[data-explore]').forEach(box => {
  const [section, item] = box.dataset.explore.split('/').map(Number);
  explore(box, report.sections[section].items[item], (canvas, chart) => {
    const drawn = new Chart(canvas, builders[chart.kind](chart));
    return () => drawn.destroy();
  });
});
document.documentElement.dataset.charts = charts.length + ' drawn, ' + failed + ' failed';
// A folded section opens where a link leads into it, and on paper.
const folds = [...document.querySelectorAll('details.fold')];
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1)), fold = target && target.querySelector('details.fold');
  if (fold) fold.open = true;
};
window.addEventListener('hashchange', unfold);
unfold();
let closed = [];
// Paper is narrower than the window; redraw for it, and back.
window.addEventListener('beforeprint', () => {
  closed = folds.filter(fold => !fold.open);
  closed.forEach(fold => fold.open = true);
  charts.forEach(chart => {
    const box = chart.canvas.parentElement;
    box.dataset.screen = box.style.height;
    if (box.closest('#summary')) box.style.height = '230px';  // the summary is one page
    chart.resize(660, box.offsetHeight);
  });
});
window.addEventListener('afterprint', () => {
  closed.forEach(fold => fold.open = false);
  charts.forEach(chart => {
    chart.canvas.parentElement.style.height = chart.canvas.parentElement.dataset.screen;
    chart.resize();
  });
});

const links = new Map([...document.querySelectorAll('nav a')].map(link => [link.getAttribute('href').slice(1), link]));
const visible = new Set();
const observer = new IntersectionObserver(entries => {
  entries.forEach(entry => entry.isIntersecting ? visible.add(entry.target.id) : visible.delete(entry.target.id));
  let current = [...links.keys()].find(id => visible.has(id));
  links.forEach(
      (link, id) => id === current ? link.setAttribute('aria-current', 'true') : link.removeAttribute('aria-current'));
}, {rootMargin: '-12% 0px -60% 0px'});
document.querySelectorAll('main section').forEach(section => observer.observe(section));
})();
