"use strict";

const SERIES = ["measured", "predicted"];
const MARKS = { measured: "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", predicted: "m0-5l5 5l-5 5l-5-5z" };
const FEW = 12; // largest number of points for which each one is marked
const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [240, 54, 10, 42, 52];

/** Return text with the signs that HTML reads as markup escaped. */
function plain(text) {
  return String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Return a number as text for an axis. */
function told(value) {
  const size = Math.abs(value);
  const short = Number(value.toPrecision(6));
  const text = value !== 0 && (size < 1e-3 || size >= 1e5) ? short.toExponential().replace("e+", "e") : String(short);
  return text.replaceAll("-", "−");
}

/** Return round numbers between low and high, about `count` of them. */
function ticks(low, high, log, count) {
  if (log && Math.log10(high / low) >= 1) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const stride = Math.max(1, Math.ceil((last - first) / count));
    return Array.from({ length: Math.floor((last - first) / stride) + 1 }, (_, i) => 10 ** (first + i * stride));
  }
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

/** Return an axis of these numbers: its place for a number on [0, 1], and its ticks. */
function axis(numbers, log, count) {
  const shown = numbers.filter((number) => number !== null && (!log || number > 0));
  let [low, high] = shown.length ? [Math.min(...shown), Math.max(...shown)] : [log ? 0.1 : 0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) / 10 || 0.5), high + (Math.abs(high) / 10 || 0.5)];
  const scale = log ? Math.log : (number) => number;
  const place = (number) => (scale(number) - scale(low)) / (scale(high) - scale(low));
  return { place, ticks: ticks(low, high, log, count), drawn: (number) => number !== null && (!log || number > 0) };
}

/** Return the mark of a series at a place: a circle or a diamond. */
function mark(name, at) {
  return `<path class="mark ${name}" d="M${at.join(" ")}${MARKS[name]}"/>`;
}

/** Return a line with its number at each tick of a vertical axis, between two places across. */
function grid(up, atY, left, right) {
  return up.ticks.map((tick) => {
    const y = atY(tick).toFixed(1);
    const number = `<text x="${left - 4}" y="${y}" dy="4" text-anchor="end">${told(tick)}</text>`;
    return `<path class="grid" d="M${left} ${y}H${right}"/>${number}`;
  });
}

/** Return a path through places; null lifts the pen. */
function path(places) {
  return places.map((at, i) => at && `${places[i - 1] ? "L" : "M"}${at.join(" ")}`).filter(Boolean).join("");
}

/** Return the picture of an entry as the content of an svg element `width` units wide. */
function picture(entry, width) {
  const named = entry.names.length > 0;
  const joined = !named && !entry.points;
  const marked = !joined || entry.x.length <= FEW;
  const across = axis(named ? [-0.4, entry.names.length - 0.6] : entry.x, entry.log_x, width > 500 ? 8 : 5);
  const up = axis([...entry.measured, ...entry.predicted, ...(named && !entry.log_y ? [0] : [])], entry.log_y, 4);
  const atX = (number) => LEFT + 8 + across.place(number) * (width - LEFT - RIGHT - 16);
  const atY = (number) => HEIGHT - BOTTOM - 6 - up.place(number) * (HEIGHT - TOP - BOTTOM - 12);
  const parts = [`<text x="2" y="12" font-weight="600">${plain(entry.y_title)}</text>`];
  SERIES.forEach((name, i) => {
    const x = LEFT + 8 + 110 * i;
    if (joined) parts.push(`<path class="${name}" d="M${x} 27h26"/>`);
    if (marked) parts.push(mark(name, [x + 13, 27]));
    parts.push(`<text x="${x + 32}" y="31">${plain(entry.labels?.[i] ?? name)}</text>`);
  });
  parts.push(...grid(up, atY, LEFT, width - RIGHT));
  for (const tick of named ? entry.names.keys() : across.ticks) {
    const text = named ? entry.names[tick] : told(tick);
    const y = HEIGHT - (entry.names.length > 3 && tick % 2 === 0 ? 36 : 22); // many names share two rows
    parts.push(`<text x="${atX(tick).toFixed(1)}" y="${y}" text-anchor="middle">${plain(text)}</text>`);
  }
  parts.push(`<text x="${(LEFT + width) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${plain(entry.x_title)}</text>`);
  for (const name of SERIES) {
    const places = entry.x.map((x, i) =>
      across.drawn(x) && up.drawn(entry[name][i]) ? [atX(x).toFixed(1), atY(entry[name][i]).toFixed(1)] : null);
    if (joined) parts.push(`<path class="${name}" d="${path(places)}"/>`);
    if (marked) parts.push(...places.filter(Boolean).map((at) => mark(name, at)));
  }
  return parts.join("");
}

/** Draw an entry into an svg element, with a description. */
function show(svg, entry, description) {
  const width = Math.round((HEIGHT * svg.clientWidth) / svg.clientHeight);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("aria-label", description);
  svg.innerHTML = picture(entry, width);
}

/** Let the slider of a section choose the entry that the section shows. */
function follow(section) {
  const { unit, entries } = JSON.parse(section.querySelector("script").textContent);
  const find = (selector) => section.querySelector(selector);
  const [slider, svg, verdict] = [find("input"), find("svg"), find(".verdict")];
  const draw = () => {
    const entry = entries[slider.valueAsNumber];
    if ("error" in entry) {
      svg.innerHTML = "";
      return;
    }
    show(svg, entry, `${entry.y_title} against ${entry.x_title}: measured and predicted. ${entry.difference}`);
  };
  const move = () => {
    const entry = entries[slider.valueAsNumber];
    const failed = "error" in entry;
    const word = failed ? "Not measurable" : entry.holds ? "Holds" : "Fails";
    find(".value").textContent = `${entry.value} ${unit}`.trim();
    slider.setAttribute("aria-valuetext", `${entry.value} ${unit}`.trim());
    verdict.className = `verdict ${entry.holds ? "holds" : "fails"}`;
    verdict.innerHTML = `<strong>${word} here:</strong> ${plain(failed ? entry.error : entry.because)}`;
    find(".meaning").textContent = failed ? "" : [...entry.broken.map((text) => `${text}.`), entry.meaning].join(" ");
    find(".difference").textContent = failed ? "" : entry.difference;
    draw();
  };
  slider.addEventListener("input", move);
  window.addEventListener("resize", draw);
  move();
}

document.querySelectorAll("section.claim").forEach(follow);
