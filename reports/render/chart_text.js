// What charts write: numbers, titles, labels in lines, and values behind bars. In the page before report.js.
const chartText = (() => {
  'use strict';
  const number = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});
  const brief = new Intl.NumberFormat('en', {maximumSignificantDigits: 2});
  const show = (value, unit) =>
      (value === null || value === undefined) ? 'n/a' : number.format(value) + (unit ? ' ' + unit : '');
  const titled = (name, unit) => unit ? (name ? name + ' [' + unit + ']' : '[' + unit + ']') : name;

  // Writes a bar's value behind its end; where the end is, Chart.js says.
  const valueLabels = {
    id: 'valueLabels',
    afterDatasetsDraw(chart) {
      const {ctx} = chart;
      ctx.save();
      ctx.font = '12px ' + Chart.defaults.font.family;
      ctx.fillStyle = Chart.defaults.color;
      chart.data.datasets.forEach((dataset, d) => {
        if (!dataset.written || !chart.isDatasetVisible(d)) return;
        chart.getDatasetMeta(d).data.forEach((bar, i) => {
          if (!dataset.written[i] || !Number.isFinite(bar.x) || !Number.isFinite(bar.y)) return;
          const p = bar.getProps(['x', 'y', 'base'], true);
          if (bar.horizontal) {
            const left = dataset.writtenLeft && dataset.writtenLeft[i];
            ctx.textAlign = left ? 'right' : 'left';
            ctx.textBaseline = 'middle';
            const whisker = dataset.writtenAbove && dataset.writtenAbove[i] !== null ?
                chart.scales.value.getPixelForValue(dataset.writtenAbove[i]) :
                p.x;
            ctx.fillText(
                dataset.written[i], left ? Math.min(p.x, p.base) - 5 : Math.max(p.x, p.base, whisker) + 5, p.y);
          } else {
            ctx.textAlign = 'center';
            ctx.textBaseline = 'bottom';
            const top = dataset.writtenAbove && dataset.writtenAbove[i] !== null ?
                chart.scales.value.getPixelForValue(dataset.writtenAbove[i]) :
                Math.min(p.y, p.base);
            ctx.fillText(dataset.written[i], p.x, top - 3);
          }
        });
      });
      ctx.restore();
    }
  };

  function seriesName(series) {
    return series.evidence && series.evidence !== series.name ? series.name + ' (' + series.evidence + ')' :
                                                                series.name;
  }

  const narrow = chart => chart.width < 520;

  // A label in lines of at most so many characters, three at most.
  function broken(text, length) {
    const lines = [];
    (text.match(/[^ .+\/_]+[ .+\/_]?|[ .+\/_]/g) || ['']).forEach(word => {
      const last = lines.length - 1;
      if (last >= 0 && (lines[last] + word).trimEnd().length <= length)
        lines[last] += word;
      else
        lines.push(word);
    });
    const shown = lines.slice(0, 3).map(line => line.trimEnd());
    shown.forEach((line, i) => shown[i] = line.length > 46 ? line.slice(0, 45) + '\u2026' : line);
    if (lines.length > 3) shown[2] += '\u2026';
    return shown.length === 1 ? shown[0] : shown;
  }

  // On a phone in two lines, where Chart.js would squeeze it into one.
  const axisTitle = text => window.innerWidth < 560 ? broken(text, 24) : text;

  return {number, brief, show, titled, valueLabels, seriesName, narrow, broken, axisTitle};
})();
