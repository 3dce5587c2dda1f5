/** Return the moving average with this weight of the past; 0 changes nothing. */
function smoothed(values, weight) {
  let last = values[0];
  return values.map((value) => (last = weight * last + (1 - weight) * value));
}

/** Return a line as it is drawn: its mean over seeds, and its band: of the seeds, or the interval that was logged. */
function drawn({ x, rows, low, high, style }, weight) {
  const seeds = rows.map((row) => smoothed(row, weight));
  const over = (of) => x.map((_, i) => of(seeds.map((row) => row[i])));
  const mean = (rows) => x.map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
  const several = seeds.length > 1;
  return {
    x, style, y: mean(seeds), raw: weight ? mean(rows) : undefined,
    low: several ? over((values) => Math.min(...values)) : low && smoothed(low, weight),
    high: several ? over((values) => Math.max(...values)) : high && smoothed(high, weight),
  };
}

/** Return lines with bands as the content of an svg element of this size, pixels. */
function lines({ title, x_title, series }, width, height) {
  const [left, right, top, bottom] = [46, width - 8, 20, height - (x_title ? 32 : 18)];
  const across = axis(series.flatMap(({ x }) => x), false, width > 500 ? 8 : 5);
  const up = axis(series.flatMap(({ y, low = [], high = [], raw = [] }) => [...y, ...low, ...high, ...raw]), false, 3);
  const atX = (number) => left + across.place(number) * (right - left);
  const atY = (number) => bottom - 4 - up.place(number) * (bottom - top - 8);
  const parts = [`<text x="2" y="12" font-weight="600">${plain(title)}</text>`, ...grid(up, atY, left, right)];
  for (const tick of across.ticks) {
    parts.push(`<text x="${atX(tick).toFixed(1)}" y="${bottom + 14}" text-anchor="middle">${told(tick)}</text>`);
  }
  if (x_title) parts.push(`<text x="${(left + right) / 2}" y="${height - 3}" text-anchor="middle">${plain(x_title)}</text>`);
  for (const { x, y, low, high, raw, style } of series) {
    const places = (values) => values.map((value, i) => [atX(x[i]).toFixed(1), atY(value).toFixed(1)]);
    if (low) parts.push(`<path class="band s${style}" d="${path([...places(high), ...places(low).reverse()])}Z"/>`);
    if (raw) parts.push(`<path class="raw s${style}" d="${path(places(raw))}"/>`);
    if (y.length === 1) parts.push(`<path class="line s${style}" d="M${places(y)[0].join(" ")}m-4 0h8"/>`);
    else parts.push(`<path class="line s${style}" d="${path(places(y))}"/>`);
  }
  return parts.join("");
}

/** Draw lines into an svg element, with a description. */
function draw(svg, panel) {
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", `${panel.title}: ${panel.series.length} lines.`);
  svg.innerHTML = panel.series.length ? lines(panel, width, height) : "";
}
