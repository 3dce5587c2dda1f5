const LETTERS = 92; // room for the names at the ends of lines, pixels
const NARROW = 240; // width of bars below which only the first and the last one have a label, pixels
const ROW = 14; // least distance of two names, pixels

/** Return the mean of numbers. */
function average(values) {
  return sum(values) / values.length;
}

/** Return places, ascending, at least `least` apart and at most `most`, each as near as possible to where it was. */
function apart(places, least, most) {
  const found = [];
  for (const place of places) found.push(Math.max(place, (found.at(-1) ?? -Infinity) + least));
  for (let i = found.length - 1, limit = most; i >= 0; i--) limit = (found[i] = Math.min(found[i], limit)) - least;
  return found;
}

/** Return lines, with their names at their ends, as the content of an svg element of this size, pixels. */
function named({ title, count, top, series }, width, height) {
  const [left, right, bottom] = [34, width - LETTERS, height - 20];
  const atX = (t) => (left + (t / count) * (right - left)).toFixed(1);
  const atY = (value) => bottom - (value / top) * (bottom - 24);
  const line = (values) => values.map((value, t) => [atX(t), atY(value).toFixed(1)]);
  const up = { ticks: ticks(0, top, false, 3) };
  const parts = [`<text x="2" y="12" font-weight="600">${plain(title)}</text>`, ...grid(up, atY, left, right)];
  for (const t of ticks(0, count, false, 4)) {
    parts.push(`<text x="${atX(t)}" y="${height - 4}" text-anchor="middle">${t === 0 ? "rollout 0" : told(t)}</text>`);
  }
  const drawn = series.filter(({ y }) => y.length).sort((a, b) => b.y.at(-1) - a.y.at(-1));
  const rows = apart(drawn.map(({ y }) => atY(y.at(-1))), ROW, bottom);
  drawn.forEach(({ name, colour, y, low, high, dash = "none" }, i) => {
    if (low) parts.push(`<path d="${path([...line(high), ...line(low).reverse()])}Z" style="fill:${colour};opacity:.18"/>`);
    parts.push(`<path d="${path(line(y))}" style="stroke:${colour};stroke-dasharray:${dash}"/>`);
    parts.push(`<text x="${right + 5}" y="${rows[i] + 4}" style="fill:${colour}">${plain(name)}</text>`);
  });
  return parts.join("");
}

/** Return a policy as bars, with labels below the first one, the middle and the last one. */
function bars({ title, colour, labels, policy }, width, height) {
  const [left, right, top, bottom] = [34, width - 8, 24, height - 20];
  const step = (right - left) / policy.length;
  const atY = (value) => bottom - value * (bottom - top);
  const parts = [`<text x="2" y="12" font-weight="600">${plain(title)}</text>`];
  parts.push(...grid({ ticks: [0, 0.5, 1] }, atY, left, right));
  policy.forEach((p, i) => {
    const [x, y] = [left + (i + 0.1) * step, atY(p)];
    parts.push(`<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${(0.8 * step).toFixed(1)}" height="${(bottom - y).toFixed(1)}" fill="${colour}"/>`);
  });
  ["start", "middle", "end"].forEach((anchor, i) => {
    if (i === 1 && width < NARROW) return;
    const x = left + (i / 2) * (right - left);
    parts.push(`<text x="${x}" y="${height - 5}" text-anchor="${anchor}">${plain(labels[i])}</text>`);
  });
  return parts.join("");
}

/** Return a line: mean and range over runs of several seeds. */
function over(runs, what) {
  const moments = runs[0][what].map((_, t) => runs.map((run) => run[what][t]));
  return { y: moments.map(average), low: moments.map((m) => Math.min(...m)), high: moments.map((m) => Math.max(...m)) };
}

/** Return the mean of a measure over seeds at the end. */
function last(seeds, what) {
  return average(seeds.map((run) => run[what].at(-1))).toFixed(2);
}

/** Return the number of the run with the higher pass@k at the end; −1 if the seeds do not tell the two apart. */
function higher(runs, factor) {
  const [one, other] = runs.map(({ seeds }) => seeds.map(({ passed }) => passed.at(-1)));
  const gaps = one.map((value, i) => value - other[i]);
  const gap = average(gaps);
  const error = Math.sqrt(average(gaps.map((value) => (value - gap) ** 2)) / (gaps.length - 1));
  return Math.abs(gap) > factor * error ? Number(gap < 0) : -1;
}

/** Draw into an svg element, with a description. content: function of its width and height, pixels. */
function put(svg, content, description) {
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  if (width === 0) return; // folded
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", description);
  svg.innerHTML = content(width, height);
}

/** Let a section run GRPO beside a controller. Nothing is drawn before the reader has predicted the answer. */
function play(section) {
  const data = JSON.parse(section.querySelector("script").textContent);
  const [main, choice] = [section.querySelector("input[name=main]"), section.querySelector("select")];
  const ask = section.querySelector(".verdict").textContent;
  const others = [...section.querySelectorAll("details input")];
  const simulated = new Map();
  const seeds = (settings) => {
    const key = JSON.stringify(settings);
    if (!simulated.has(key)) simulated.set(key, data.bandits.map((bandit) => simulate(bandit, settings)));
    return simulated.get(key);
  };
  const guessed = () => section.querySelector("input[type=radio]:checked");
  const runs = (simulating) => {
    const { held, key } = data.rules[choice.value];
    const shared = { ...data.settings, ...Object.fromEntries(others.map((o) => [o.name, o.valueAsNumber])) };
    const value = { [key]: main.valueAsNumber };
    const settings = [shared, { ...shared, ...(held ? { held: { ...held, ...value } } : value) }];
    return [data.plain, choice.value].map((name, i) => (
      { name, colour: data.colours[name], seeds: simulating ? seeds(settings[i]) : [] }));
  };
  const show = () => {
    const found = runs(guessed());
    const drawn = found.filter(({ seeds }) => seeds.length);
    const count = data.settings.rollouts;
    section.querySelectorAll("svg.curves").forEach((svg, i) => {
      const { what, title, top } = data.panels[i];
      const series = drawn.map(({ name, colour, seeds }) => ({ name, colour, ...over(seeds, what) }));
      if (what === "entropy" && data.rules[choice.value].held) {
        const y = Array(count + 1).fill(main.valueAsNumber);
        series.push({ name: `target ${main.value}`, colour: "currentColor", dash: "4 3", y });
      }
      const ends = series.map(({ name, y }) => `${name} ${y.at(-1).toFixed(2)}`).join(", ");
      put(svg, (...size) => named({ title, count, top, series }, ...size), `${title} over rollouts${ends && `; at the end: ${ends}`}.`);
    });
    section.querySelectorAll("svg.policy").forEach((svg, i) => {
      const { name, colour, seeds } = found[i];
      const tables = (seeds.length ? seeds : data.bandits).map(({ logits }) => logits);
      const rows = tables.flat().map((row) => softmax(row).p);
      const policy = data.order.map((a) => average(rows.map((p) => p[a])));
      const title = seeds.length ? `${name}: reward ${last(seeds, "reward")}` : `${name}, first policy`;
      const [first, best] = [policy[0], policy.at(-1)].map((p) => p.toFixed(2));
      put(svg, (...size) => bars({ title, colour, labels: data.pays, policy }, ...size),
        `${title}. Probability of the likeliest answer ${first}, of the one that always pays ${best}.`);
    });
    section.querySelector(".verdict").textContent = drawn.length ? judged(found) : ask;
  };
  /** Return whether the prediction was right, and the numbers of the runs. */
  const judged = (found) => {
    const right = higher(found, data.factor);
    const named = [...found].reverse().map(({ name, seeds }) =>
      `${last(seeds, "passed")} under ${name} (reward ${last(seeds, "reward")})`);
    const answer = found[right]?.name ?? data.neither;
    const word = Number(guessed().value) === right ? "As predicted." : "Not as predicted.";
    return `${word} ${answer[0].toUpperCase()}${answer.slice(1)}: pass@${data.settings.k} is ${named.join(" and ")}.`;
  };
  const move = ({ target } = {}) => {
    const { label, low, high, step, value } = data.rules[choice.value];
    if (target === choice) Object.assign(main, { min: low, max: high, step, value });
    section.querySelector("label[for='playground.main']").textContent = label;
    section.querySelector("input[type=radio][value='1'] + span").textContent = choice.value;
    for (const slider of [main, ...others]) slider.previousElementSibling.textContent = slider.value;
    show();
  };
  section.addEventListener("input", move);
  section.querySelector("details").addEventListener("toggle", show);
  window.addEventListener("resize", show);
  move();
  setTimeout(() => runs(true), 0); // while the reader predicts
}

document.querySelectorAll("section.playground").forEach(play);
