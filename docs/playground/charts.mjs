// The two charts of the playground, as SVG of the width of what holds them. Colours are in playground.css.

const SVG = "http://www.w3.org/2000/svg";
const LABEL_WIDTH = 22; // pixels that the number of an answer needs

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const line = (x1, y1, x2, y2, kind) => shape("line", { x1, y1, x2, y2, class: kind });
const text = (x, y, content, kind, anchor = "middle") =>
  shape("text", { x, y, class: kind, "text-anchor": anchor }, content);
const short = (number) => number.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });

function picture(holder, height, title, description) {
  const width = Math.max(280, Math.floor(holder.clientWidth));
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  svg.append(shape("title", {}, title), shape("desc", {}, description));
  holder.replaceChildren(svg);
  return { svg, width };
}

/** Round steps, at most `most` of them, that cover a range. */
function ticks(lower, upper, most) {
  const rough = (upper - lower) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const first = Math.ceil(lower / step);
  return Array.from({ length: Math.floor(upper / step) - first + 1 }, (_, i) => (first + i) * step);
}

/**
 * Truth as bars, estimates as dots, intervals as lines. The scale is that of the truth wherever the intervals fit: then
 * they shrink as epsilon grows, and the bars stay.
 */
export function chartOfCounts(holder, bars) {
  const missed = bars.filter((bar) => bar.missed).length;
  const title = "Bar chart of true and estimated numbers of people for each answer";
  const description = `${bars.length} answers. The numbers are in the table below the chart. ${missed} intervals miss.`;
  const [height, top, bottom, left] = [320, 12, 24, 46];
  const { svg, width } = picture(holder, height, title, description);
  let upper = 1.1 * Math.max(...bars.map(({ truth }) => truth));
  while (upper < Math.max(...bars.map((bar) => bar.upper))) upper *= 1.25;
  const lower = Math.min(-upper / 20, ...bars.map((bar) => bar.lower));
  const y = (number) => top + ((upper - number) / (upper - lower)) * (height - top - bottom);
  const step = (width - left) / bars.length;
  for (const tick of ticks(lower, upper, 6)) {
    svg.append(line(left, y(tick), width, y(tick), tick === 0 ? "axis" : "grid"));
    svg.append(text(left - 6, y(tick) + 4, short(tick), "label", "end"));
  }
  const every = Math.ceil(LABEL_WIDTH / step);
  bars.forEach(({ name, truth, estimate, lower: low, upper: high, missed: misses }, i) => {
    const middle = left + (i + 0.5) * step;
    const cap = Math.min(5, step / 3);
    const group = shape("g", misses ? { class: "missed" } : {});
    group.append(shape("title", {}, `Answer ${name}: ${short(truth)} people, estimate ${short(estimate)}, `
      + `95 % interval ${short(low)} to ${short(high)}`));
    const box = { x: middle - 0.4 * step, y: y(truth), width: 0.8 * step, height: Math.max(0, y(0) - y(truth)) };
    group.append(shape("rect", { ...box, class: "truth" }));
    group.append(line(middle, y(low), middle, y(high), "interval"));
    for (const end of [low, high]) group.append(line(middle - cap, y(end), middle + cap, y(end), "interval"));
    group.append(shape("circle", { cx: middle, cy: y(estimate), r: Math.min(4, step / 3), class: "estimate" }));
    svg.append(group);
    if (i % every === 0) svg.append(text(middle, height - 6, name, "label"));
  });
}

/** Margins of error against epsilon, both on logarithmic scales: the chosen protocol, the others faint. */
export function chartOfErrors(holder, curves, epsilon, percent) {
  const points = curves.find(({ chosen }) => chosen).points;
  const here = points.find(([at]) => at === epsilon)[1];
  const title = "Margin of error against epsilon";
  const description = points.map(([at, margin]) => `epsilon ${at}: ${percent(margin)}`).join("; ");
  const [height, top, bottom, left, right] = [280, 22, 40, 52, 14];
  const { svg, width } = picture(holder, height, title, description);
  const margins = curves.flatMap((curve) => curve.points.map(([, margin]) => margin));
  const [low, high] = [Math.log10(Math.min(...margins)) - 0.1, Math.log10(Math.max(...margins)) + 0.1];
  const [first, last] = [points[0][0], points[points.length - 1][0]].map(Math.log2);
  const x = (at) => left + ((Math.log2(at) - first) / (last - first)) * (width - left - right);
  const y = (margin) => top + ((high - Math.log10(margin)) / (high - low)) * (height - top - bottom);
  for (let power = Math.ceil(low); power <= high; power++) {
    svg.append(line(left, y(10 ** power), width - right, y(10 ** power), "grid"));
    svg.append(text(left - 6, y(10 ** power) + 4, percent(10 ** power), "label", "end"));
  }
  for (let at = points[0][0]; at <= points[points.length - 1][0]; at *= 2) {
    svg.append(line(x(at), top, x(at), height - bottom, "grid"));
    svg.append(text(x(at), height - bottom + 16, at, "label"));
  }
  svg.append(text(left + (width - left - right) / 2, height - 6, "epsilon", "label"));
  for (const curve of [...curves].sort((a, b) => a.chosen - b.chosen)) {
    const path = curve.points.map(([at, margin]) => `${x(at)},${y(margin)}`).join(" ");
    svg.append(shape("polyline", { points: path, class: curve.chosen ? "curve chosen" : "curve" },
      shape("title", {}, curve.name)));
  }
  svg.append(line(x(epsilon), top, x(epsilon), height - bottom, "here"));
  svg.append(shape("circle", { cx: x(epsilon), cy: y(here), r: 5, class: "estimate" }));
  // Beside the curve, which falls: to the right above it, or to the left below it.
  const [shift, anchor] = x(epsilon) > width - 110 ? [-8, "end"] : [8, "start"];
  svg.append(text(x(epsilon) + shift, y(here) + (shift < 0 ? 18 : -8), `± ${percent(here)}`, "value", anchor));
}
