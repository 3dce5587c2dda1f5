const simulated = new Map();

/** Return the runs of some bandits under the same settings, and keep them. */
function simulations(bandits, settings) {
  const name = JSON.stringify(settings);
  if (!simulated.has(name)) simulated.set(name, bandits.map((bandit) => simulate(bandit, settings)));
  return simulated.get(name);
}

/** Return what a lesson shows with its slider at a position, and other settings; the page simulates it. */
function lived({ bandits, runs, moved, names, measured, neither, margin, titles }, position, others) {
  const found = runs.map((run, i) => simulations(bandits, { ...run, eps_high: moved[position][i], ...others }));
  const series = (of) => found.map((seeds, style) =>
    drawn({ x: of(seeds[0]).map((_, t) => t), rows: seeds.map(of), style }, 0));
  const panels = [({ entropy }) => entropy, ({ reward }) => reward.slice(0, -1)].map((of, i) => (
    { title: titles[i], series: series(of) }));
  panels.at(-1).x_title = "rollout";
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const ends = found.map((seeds) => seeds.map(({ entropy }) => entropy.at(-1)));
  const [first, second] = [...ends.keys()].sort((a, b) => mean(ends[b]) - mean(ends[a]));
  const gaps = ends[first].map((end, i) => end - ends[second][i]);
  const spread = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean(gaps)) ** 2, 0) / (gaps.length - 1));
  const right = mean(gaps) > margin * spread ? names[first] : neither;
  const numbers = names.map((name, i) => `${name} ${mean(ends[i]).toFixed(2)}`).join(", ");
  return { panels, right, verdict: `${right[0].toUpperCase()}${right.slice(1)}. ${measured}: ${numbers}.` };
}
