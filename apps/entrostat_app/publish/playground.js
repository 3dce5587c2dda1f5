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

/** Return probabilities and their logarithms. */
function softmax(logits) {
  const top = Math.max(...logits);
  const weights = logits.map((z) => Math.exp(z - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return { p: weights.map((weight) => weight / total), logp: logits.map((z) => z - top - Math.log(total)) };
}

/** Return the advantages of a group by GRPO: centred rewards over their unbiased standard deviation. */
function advantages(rewards) {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / Math.max(rewards.length - 1, 1);
  return rewards.map((reward) => (reward - mean) / (Math.sqrt(variance) + 1e-6));
}

/** Return the logits of a state after one pass of clipped policy gradient over its group. */
function pass(logits, arms, advantage, old, { lr, eps_low, eps_high }) {
  const { p, logp } = softmax(logits);
  const pushed = logits.map(() => 0);
  arms.forEach((arm, g) => {
    const ratio = Math.exp(logp[arm] - old[arm]);
    const clipped = advantage[g] > 0 ? ratio > 1 + eps_high : ratio < 1 - eps_low;
    if (!clipped) pushed[arm] += (ratio * advantage[g]) / arms.length;
  });
  const total = pushed.reduce((sum, push) => sum + push, 0);
  return logits.map((z, a) => z + lr * (pushed[a] - p[a] * total));
}

/** Return the bandit's entropy, nats, and expected reward before each rollout and at the end, and its last logits. */
function simulate(bandit, { rollouts, group, passes, ...step }) {
  const states = bandit.logits.length;
  const [luck, verdicts] = bandit.salts.map((salt) => draws(bandit.seed, salt, rollouts, states, group));
  let logits = bandit.logits;
  const [entropy, reward] = [[], []];
  const observe = (policies) => {
    const mean = (of) => policies.reduce((sum, policy, s) => sum + of(policy, s), 0) / states;
    entropy.push(mean(({ p, logp }) => -p.reduce((sum, value, a) => sum + value * logp[a], 0)));
    reward.push(mean(({ p }, s) => p.reduce((sum, value, a) => sum + value * bandit.success[s][a], 0)));
  };
  for (let t = 0; t < rollouts; t++) {
    const policies = logits.map(softmax);
    observe(policies);
    logits = logits.map((row, s) => {
      const first = (t * states + s) * group;
      let total = 0;
      const cumulative = policies[s].p.map((value) => (total += value)).slice(0, -1);
      const responses = Array.from({ length: group }, (_, g) => first + g);
      const arms = responses.map((i) => cumulative.filter((value) => value < luck[i]).length);
      const advantage = advantages(responses.map((i, g) => Number(verdicts[i] < bandit.success[s][arms[g]])));
      for (let m = 0; m < passes; m++) row = pass(row, arms, advantage, policies[s].logp, step);
      return row;
    });
  }
  observe(logits.map(softmax));
  return { entropy, reward, logits };
}

/** Let the sliders of the playground run its bandit. */
function play(section) {
  const { bandit, settings } = JSON.parse(section.querySelector("script").textContent);
  const find = (selector) => section.querySelector(selector);
  const sliders = [...section.querySelectorAll("input")];
  const run = () => {
    for (const slider of sliders) {
      settings[slider.name] = slider.valueAsNumber;
      slider.previousElementSibling.textContent = slider.value;
    }
    const { entropy, reward } = simulate(bandit, settings);
    const entry = {
      x: entropy.map((_, t) => t), x_title: "rollout", y_title: "entropy H (nats), expected reward R", names: [],
      labels: ["H", "R"], measured: entropy, predicted: reward,
    };
    const [left, earned] = [entropy.at(-1).toFixed(3), reward.at(-1).toFixed(3)];
    find(".verdict").textContent = `After ${settings.rollouts} rollouts: entropy ${left} nats, expected reward ${earned}.`;
    show(find("svg"), entry, "Entropy and expected reward of each rollout.");
  };
  sliders.forEach((slider) => slider.addEventListener("input", run));
  window.addEventListener("resize", run);
  run();
}

document.querySelectorAll("section.playground").forEach(play);
