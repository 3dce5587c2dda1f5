/** Return 64 mixed bits: the finaliser of SplitMix64 over one more key. */
function hashed(state, key) {
  let x = BigInt.asUintN(64, (state ^ BigInt(key)) + 0x9e3779b97f4a7c15n);
  x = BigInt.asUintN(64, (x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
  x = BigInt.asUintN(64, (x ^ (x >> 27n)) * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

const kept = new Map();

/** Return uniform numbers of a purpose, one for each rollout, state and response, and keep them: they never change. */
function draws(seed, salt, rollouts, states, group) {
  const name = [seed, salt, rollouts, states, group].join();
  if (!kept.has(name)) {
    const numbers = new Float64Array(rollouts * states * group);
    const purpose = hashed(hashed(0n, seed), salt);
    for (let t = 0, i = 0; t < rollouts; t++) {
      const rollout = hashed(purpose, t);
      for (let s = 0; s < states; s++) {
        const state = hashed(rollout, s);
        for (let g = 0; g < group; g++) numbers[i++] = (Number(hashed(state, g) >> 12n) + 0.5) * 2 ** -52;
      }
    }
    kept.set(name, numbers);
  }
  return kept.get(name);
}

/** Return the sum of numbers. */
function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** Return the scalar product of two vectors. */
function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

/** Return probabilities, their logarithms, the entropy (nats), and its gradient in the logits. */
function softmax(logits) {
  let top = -Infinity;
  for (const z of logits) if (z > top) top = z;
  const p = logits.map((z) => Math.exp(z - top));
  const total = sum(p);
  const log = Math.log(total);
  const logp = logits.map((z) => z - top - log);
  for (let a = 0; a < p.length; a++) p[a] /= total;
  const entropy = -dot(p, logp);
  return { p, logp, entropy, slope: p.map((value, a) => -value * (logp[a] + entropy)) };
}

/** Return the advantages of a group by GRPO: centred rewards over their unbiased standard deviation. */
function advantages(rewards) {
  const mean = sum(rewards) / rewards.length;
  const variance = sum(rewards.map((reward) => (reward - mean) ** 2)) / Math.max(rewards.length - 1, 1);
  return rewards.map((reward) => (reward - mean) / (Math.sqrt(variance) + 1e-6));
}

/** Return the clipped policy gradient of a state's group in its logits. */
function gradient({ p, logp }, { arms, advantage, old }, { eps_low, eps_high }) {
  const pushed = p.map(() => 0);
  arms.forEach((arm, g) => {
    if (advantage[g] === 0) return;
    const ratio = Math.exp(logp[arm] - old[arm]);
    const clipped = advantage[g] > 0 ? ratio > 1 + eps_high : ratio < 1 - eps_low;
    if (!clipped) pushed[arm] += (ratio * advantage[g]) / arms.length;
  });
  const total = sum(pushed);
  return pushed.map((push, a) => push - p[a] * total);
}

/** Return a number kept within limits. */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** Return the product of two 3 × 3 matrices. */
function product(a, b) {
  return a.map((row) => [0, 1, 2].map((j) => row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j]));
}

/** Return the congruence M·C·Mᵀ of 3 × 3 matrices. */
function congruent(m, c) {
  return product(product(m, c), m[0].map((_, j) => m.map((row) => row[j])));
}

/** Return a covariance of (entropy, gain, drift) with the gain's variance multiplied by a factor. */
function stretched(covariance, factor) {
  const scale = [1, Math.sqrt(factor), 1];
  return covariance.map((row, i) => row.map((value, j) => value * scale[i] * scale[j]));
}

/** Return a plant (entrostat.numbers.plant) that knows no more than where the entropy is. */
function plant(entropy, gain, { PRIOR_SPREAD, SURPRISE, TRUST }) {
  const covariance = [[0, 0, 0], [0, (PRIOR_SPREAD * gain) ** 2, 0], [0, 0, SURPRISE ** 2]];
  return { entropy, gain, drift: 0, covariance, trust: TRUST, variance: SURPRISE ** 2, surprise: 0 };
}

/** Return a plant after a step with the signal u and then a reading of the entropy. */
function read(before, reading, u, least, { forgetting, integral, constants: c }) {
  if (Number.isNaN(before.entropy)) return { ...before, entropy: reading };
  const [noise, missed] = [(1 - before.trust) * before.variance, before.trust ** 2 * before.variance];
  const room = (c.LIVE_SPREAD * before.gain) ** 2 / before.covariance[1][1];
  const faded = stretched(before.covariance, Math.max(Math.min(1 / forgetting, room), 1));
  const moved = congruent([[1, u, 1], [0, 1, 0], [0, 0, 1]], faded);
  moved[0][0] += missed;
  moved[2][2] += integral ** 2 * missed;
  const expected = moved[0][0] + noise;
  const weight = moved.map((row) => row[0] / expected);
  const predicted = before.entropy + before.gain * u + before.drift;
  const believed = c.OUTLIER * Math.sqrt(expected);
  const surprise = clamp(reading - predicted, -believed, believed);
  const [by_entropy, by_gain, by_drift] = weight.map((value) => value * surprise);
  const gain = Math.max(clamp(before.gain + by_gain, c.FALL * before.gain, c.RISE * before.gain), least);
  const keep = [[1 - weight[0], 0, 0], [-weight[1], 1, 0], [-weight[2], 0, 1]];
  const covariance = congruent(keep, moved).map((row, i) => row.map((value, j) => value + noise * weight[i] * weight[j]));
  const spread = gain === before.gain + by_gain ? 0 : (c.PRIOR_SPREAD * gain) ** 2;
  const rest = surprise - (gain - before.gain) * u - by_drift;
  const variance = c.MEMORY * before.variance + (1 - c.MEMORY) * Math.max(surprise * rest, 0);
  const correlation = clamp((surprise * before.surprise) / (variance + rest ** 2), -1, 1);
  return {
    entropy: predicted + by_entropy, gain, drift: before.drift + by_drift,
    covariance: stretched(covariance, Math.max(spread / covariance[1][1], 1)),
    trust: clamp(before.trust * Math.exp(c.TRUST_RATE * correlation), c.LEAST_TRUST, c.MOST_TRUST),
    variance: Math.max(variance, 2 ** -1022), surprise: rest,
  };
}

/** Return a controller that holds a target by an entropy bonus: entrostat's thermostat in mode bonus, undelayed. */
function thermostat(settings) {
  const { target, k, rate, kappa, bonus_max, constants } = settings;
  let now = plant(NaN, kappa, constants);
  let [flow, reach, planned, updates, seen, began, astray] = [0, 0, 0, 1, NaN, 0, 0];

  /** Start the estimate afresh after many plans in a row that did not lead to a far target. */
  const watch = (entropy) => {
    const before = target - seen;
    const wrong = reach > 0 && Math.sign(before) * flow <= constants.IDLE * reach;
    if (!(wrong && astray > 0)) began = Math.abs(before) || 0;
    [seen, astray] = [entropy, wrong ? astray + 1 : 0];
    if (astray < constants.PATIENCE) return;
    const far = Math.max(Math.min(constants.PATIENCE * rate, target / 2), rate);
    if (Math.abs(target - entropy) > Math.max(far, began - rate)) now = plant(now.entropy, kappa, constants);
    astray = 0;
  };
  const wanted = () => {
    const error = target - now.entropy;
    const change = clamp(k * error, -rate, rate) - now.drift;
    const away = Math.abs(k * error) > rate && change * error < 0;
    return away ? 0 : change / (now.gain * updates);
  };
  return {
    observe(entropy) {
      now = read(now, entropy, flow, rate < kappa * reach ? rate / reach : 0, settings);
      watch(entropy);
      if (planned > 0) updates = planned;
      flow = reach = planned = 0;
    },
    /** Return the coefficient of the bonus; base: entropy change without it; slope: change by a coefficient of 1. */
    bonus(base, slope) {
      const coef = slope > 0 ? clamp((wanted() - base) / slope, -bonus_max, bonus_max) : 0;
      [flow, reach, planned] = [flow + base + coef * slope, reach + bonus_max * slope, planned + 1];
      return coef;
    },
  };
}

/** Return the responses of a state's group: arms and their advantages; first: number of the group's first draw. */
function respond({ p, logp }, success, luck, verdicts, first, group) {
  const [arms, rewards] = [[], []];
  for (let i = first; i < first + group; i++) {
    let [arm, cumulative] = [0, p[0]];
    while (arm < p.length - 1 && cumulative < luck[i]) cumulative += p[++arm];
    arms.push(arm);
    rewards.push(Number(verdicts[i] < success[arm]));
  }
  return { arms, advantage: advantages(rewards), old: logp };
}

/**
 * Return the bandit's entropy (nats), expected reward and pass@k before each rollout and at the end, and its last logits.
 *
 * held: settings of a thermostat. coef: coefficient of a constant entropy bonus. Without both it is GRPO.
 */
function simulate(bandit, { rollouts, group, passes, lr, held, coef = 0, k = 1, ...clip }) {
  const states = bandit.logits.length;
  const [luck, verdicts] = bandit.salts.map((salt) => draws(bandit.seed, salt, rollouts, states, group));
  const best = bandit.success.map((row) => row.map((value) => Number(value === Math.max(...row))));
  const controller = held ? thermostat(held) : { observe() {}, bonus: () => coef };
  const mean = (values) => sum(values) / states;
  let logits = bandit.logits;
  let policies = logits.map(softmax);
  const [entropy, reward, passed] = [[], [], []];
  const observe = () => {
    entropy.push(mean(policies.map((policy) => policy.entropy)));
    reward.push(mean(policies.map(({ p }, s) => dot(p, bandit.success[s]))));
    passed.push(mean(policies.map(({ p }, s) => 1 - (1 - dot(p, best[s])) ** k)));
  };
  for (let t = 0; t < rollouts; t++) {
    observe();
    controller.observe(entropy[t]);
    const groups = policies.map((policy, s) =>
      respond(policy, bandit.success[s], luck, verdicts, (t * states + s) * group, group));
    for (let m = 0; m < passes; m++) {
      const steps = policies.map((policy, s) => gradient(policy, groups[s], clip));
      const base = mean(policies.map(({ slope }, s) => dot(slope, steps[s])));
      const bonus = controller.bonus(base, mean(policies.map(({ slope }) => dot(slope, slope))));
      logits = logits.map((row, s) => row.map((z, a) => z + lr * (steps[s][a] + bonus * policies[s].slope[a])));
      policies = logits.map(softmax);
    }
  }
  observe();
  return { entropy, reward, passed, logits };
}
