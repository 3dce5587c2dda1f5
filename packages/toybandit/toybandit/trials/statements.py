"""Statement of each claim in LaTeX; H is the entropy in nats, π and p the policy, K its arms, A the advantage."""


def over(*lines: str) -> str:
    """Return lines stacked over one another, so that a statement fits on a phone."""
    return r"\begin{gathered}" + r" \\ ".join(lines) + r"\end{gathered}"


QUADRANTS = (
    r"\frac{\partial H}{\partial w_{\mathrm{I}}},\ \frac{\partial H}{\partial w_{\mathrm{III}}} < 0 < "
    r"\frac{\partial H}{\partial w_{\mathrm{II}}},\ \frac{\partial H}{\partial w_{\mathrm{IV}}}"
)
STABLE = (r"\text{stable} \iff", r"0 < gK_p < 2, \quad gK_i > 0,", r"2gK_p + gK_i < 4")
STATEMENTS: dict[str, str] = {
    "lemma1-order": over(
        r"\Delta H = -\operatorname{Cov}_{a\sim p}(\log p_a,\ \Delta z_a) + O(\eta^2),", r"\Delta z = \eta\, d"
    ),
    "lemma1-remainder": r"|\Delta H + \operatorname{Cov}_p(\log p, \Delta z)| \le \lVert \Delta z \rVert_\infty^2",
    "thm1-centred": over(
        r"\mathbb{E}_\pi[A] = 0 \ \Rightarrow", r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,A) + O(\eta^2)"
    ),
    "thm1-any-advantage": over(
        r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,A) + O(\eta^2)", r"\text{for any } A"
    ),
    "thm2-natural-gradient": over(
        r"F^{+} g = A - \bar A,", r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ A) + O(\eta^2)"
    ),
    "em-equation-7": over(
        r"-\Delta H \propto \operatorname{Cov}_{y \sim \pi}(\log \pi(y),\ \pi(y)\, A(y)),",
        r"y = (y_1, \dots, y_L)",
    ),
    "law-fit": r"R = -a\, e^{H} + b",
    "law-algorithms": r"\frac{a}{a_{\mathrm{GRPO}}},\ \frac{b}{b_{\mathrm{GRPO}}} \in [0.98,\ 1.02]",
    "law-prediction": over(
        r"\hat R(H) = -\hat a\, e^{H} + \hat b \ \text{ from the first 15\%},", r"\mathrm{RMSE}(\hat R, R) \le 0.05"
    ),
    "clip-cov": r"k_1 < k_2 \ \Rightarrow\ H_{\mathrm{end}}(k_1) < H_{\mathrm{end}}(k_2)",
    "kl-cov": r"\beta_1 < \beta_2 \ \Rightarrow\ H_{\mathrm{end}}(\beta_1) < H_{\mathrm{end}}(\beta_2)",
    "kl-cov-on-policy": r"\pi = \pi_{\mathrm{old}} \ \Rightarrow\ "
    r"\nabla\, |\log \pi - \log \pi_{\mathrm{old}}| = 0",
    "clip-thresholds": r"\frac{\partial H_{\mathrm{end}}}{\partial \varepsilon_{\mathrm{high}}} > 0, \qquad "
    r"\frac{\partial H_{\mathrm{end}}}{\partial \varepsilon_{\mathrm{low}}} < 0",
    "clip-random-rewards": over(
        r"R \perp a \ \Rightarrow",
        r"H_{\mathrm{end}}(1 + \varepsilon) < H_{\mathrm{end}} < H_{\mathrm{end}}(1 - \varepsilon)",
    ),
    "clip-free": over(
        r"H_{\mathrm{end}}(\varepsilon = \infty) > H_{\mathrm{end}}(\varepsilon)",
        r"\text{for the default and the tighter } \varepsilon",
    ),
    "clip-mechanism": over(
        r"r > 1 + \varepsilon,\ A > 0: \quad \Delta H > 0,", r"r < 1 - \varepsilon,\ A < 0: \quad \Delta H < 0"
    ),
    "off-policy-updates": r"M_1 < M_2 \ \Rightarrow\ \Delta H(M_2) < \Delta H(M_1) < 0",
    "cor4.1-collinear": r"\mathbb{E}[\Delta z_\alpha] = (1 + \alpha\,(1 - 2\rho))\ \mathbb{E}[\Delta z_0]",
    "cor4.1-signs": r"\Delta H\,\big|_{A > 0} < 0 < \Delta H\,\big|_{A < 0}",
    "thm4.2-p-control": r"\alpha = K_p\,(H - H^*) \ \Rightarrow\ H \to H^*",
    "thm4.2-fixed-point": over(
        r"|H - H^*| = \frac{\alpha^*}{K_p},", r"\alpha^* = \frac{q_1 - q_2}{q_1(1 - \rho) + (1 - q_1)\rho}"
    ),
    "thm4.3-pi-control": over(
        r"\alpha = K_p\, e_t + K_i \textstyle\sum_{s \le t} e_s, \quad e = H - H^*", r"\Rightarrow\ H \to H^*"
    ),
    "thm4.3-off-policy": r"K_i > 0,\ \tau = 0,\ M > 1 \ \Rightarrow\ H \to H^*",
    "thm4.3-on-policy": r"K_i = 0,\ M = 1 \ \Rightarrow\ H \to H^*",
    "tau-zero": over(r"\tau = 0,\ M = 1 \ \Rightarrow", r"H < H^* - 0.2, \quad |\alpha| \to \infty"),
    "tau-below-top": r"\tau = 0.95 \ \Rightarrow\ H \to H^*",
    "windup": over(r"S_{t+1} = S_t + e_t \ \text{ without a bound} \ \Rightarrow", r"\min_t H_t > H^* - 0.1"),
    "pi-stability-linear": over(*STABLE),
    "pi-stability-exact": over(*STABLE, r"g = -\frac{\partial\, \Delta H}{\partial \alpha}\Big|_{H^*}"),
    "entropic-gains": over(
        r"V = e^2 + \tfrac{gK_i}{1 - gK_i} S^2, \quad \Delta V < 0 \iff",
        r"(1 - gK_p)^2 < 1 - gK_i, \quad 0 < gK_i < 1",
    ),
    "entropy-bonus": over(
        r"\mathcal{L} - c\, H:", r"c_1 < c_2 \ \Rightarrow\ H_{\mathrm{end}}(c_1) < H_{\mathrm{end}}(c_2)"
    ),
    "entropy-advantage": over(
        r"A + \min\bigl(\alpha H, \tfrac{|A|}{\kappa}\bigr):", r"H_{\mathrm{end}} < H_{\mathrm{end}}^{\mathrm{GRPO}}"
    ),
    "adaptive-entropy": over(
        r"\mathcal{L} - c_t\, \mathbf{1}[H < H^*]\, H, \quad c_{t+1} = c_t \pm \delta", r"\Rightarrow\ H \to H^*"
    ),
    "pos-adv-reweight": over(
        r"A > 0:\ A \to \lambda_t A, \quad \lambda_{t+1} = \lambda_t \pm \delta", r"\Rightarrow\ H \to H^*"
    ),
    "adaptive-clip": over(
        r"r \in [1 - \varepsilon,\ (1 - \varepsilon)^{-1} + k],",
        r"\Delta k = \delta \operatorname{sign}(H^* - H) \ \Rightarrow\ H \to H^*",
    ),
    "stare-target": over(
        r"A > 0,\ p \text{ among the least likely tenth}:\ A \to 1.1\, A \ \text{ if } H < H^*",
        r"\Rightarrow\ H \to H^*",
    ),
    "thermostat": over(
        r"\mathcal{L} - \mu_t H, \quad \mu_t = \frac{k\,(H^* - H)/\kappa - \bar\varphi}{\bar F}",
        r"\Rightarrow\ H \to H^*",
    ),
    "token-flow": over(
        r"\Delta H = -\eta\, w\, \varphi + O(\eta^2),",
        r"\varphi = p\,(\log p + H) - (S_{2L} + H S_2),",
        r"S_2 = \textstyle\sum_a p_a^2, \quad S_{2L} = \sum_a p_a^2 \log p_a",
    ),
    "token-flows-add": r"\Delta H = \textstyle\sum_{i} \Delta H_i + O(\eta^2)",
    "sign-boundary": over(
        r"w > 0: \quad \Delta H > 0 \iff p < p^*,",
        r"p^* (\log p^* + H) = S_{2L} + H S_2, \quad p^* \ge e^{-H}",
    ),
    "steer-thm1": over(
        r"\Delta H = \Omega + O(\eta^2),",
        r"\Omega = -\eta\, \mathbb{E}_{\pi}\Bigl[\tfrac{A}{\pi_{\mathrm{old}}}\, \pi (1 - \pi)(\log \pi + H)\Bigr]",
    ),
    "opefo-thm1": r"\Delta H = -\eta\, \mathbb{E}_{\pi}\bigl[A\,(1 - \pi)^2 (\log \pi + H)\bigr]",
    "steer-sign": r"\operatorname{sign} \Delta H = -\operatorname{sign} A\,(\log p + H)",
    "opefo-sign": r"\operatorname{sign} \Delta H = -\operatorname{sign} A\,(\log p + H)",
    "estimates-by-error": over(
        r"\mathrm{MSE}_{\mathrm{exact}} < \mathrm{MSE}_{\mathrm{own\ logit}}",
        r"< \mathrm{MSE}_{\Omega},\ \mathrm{MSE}_{\mathrm{OPEFO}} < \mathrm{MSE}_{\mathrm{Cov}}",
    ),
    "steer-table-7": over(
        r"\mathrm{MSE}_\Omega < \mathrm{MSE}_{\mathrm{Cov}},",
        r"r_\Omega > r_{\mathrm{Cov}}, \quad \rho_\Omega > \rho_{\mathrm{Cov}}",
    ),
    "four-quadrants": QUADRANTS,
    "four-quadrants-det": QUADRANTS,
    "steer-collapse": r"w = \lambda_{\min}^{\,\Omega / \max \Omega} \ \Rightarrow\ H_{\mathrm{end}} \ge \tfrac12 H_0",
    "opefo-formula": r"\Delta H = -\eta\, A\,(1 - p)^2\,(\log p + H)",
    "opefo-one-step": r"\textstyle\sum_i (1 \pm \lambda^*)\, \Delta H_i = 0 \ \Rightarrow\ |\Delta H| = O(\eta^2)",
    "qae-baseline": over(
        r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,(r - b)) + O(\eta^2)",
        r"\Rightarrow\ \frac{\partial \Delta H}{\partial b} > 0",
    ),
    "qae-quantile": r"K_1 < K_2 \ \Rightarrow\ H_{\mathrm{end}}(K_1) < H_{\mathrm{end}}(K_2)",
    "bapo-bounds": over(
        r"\rho = \frac{\sum_{A > 0} \pi_{\mathrm{old}}\, |\operatorname{clip}(r)\, A|}"
        r"{\sum \pi_{\mathrm{old}}\, |\operatorname{clip}(r)\, A|},",
        r"\frac{\partial \rho}{\partial c_{\mathrm{high}}},\ \frac{\partial \rho}{\partial c_{\mathrm{low}}} \ge 0",
    ),
    "lp-reg-shield": over(
        r"\frac{\partial}{\partial \log \pi}\left[-rA + \beta\,\operatorname{kl}(q \,\Vert\, \pi)\right] \le 0,",
        r"q = \pi_{\mathrm{old}}\ \text{without noise},\quad A < 0",
    ),
    "lp-reg-entropy": r"H_{\mathrm{end}}(\text{Lp-Reg}) > H_{\mathrm{end}}(\text{GRPO}) + 0.05",
    "siren-anchor": over(
        r"\mathcal{L} + \beta\,(\bar H - \bar H_0)^2 \ \Rightarrow\ \bar H \to \bar H_0,",
        r"\bar H: \text{ the most uncertain fifth of the tokens}",
    ),
    "siren-collapse": r"\mathcal{L} + \beta\,(\bar H - \bar H_0)^2 \ \Rightarrow\ \bar H_T > \tfrac12 \bar H_0 \ "
    r"\text{ in every run}",
    "bapo-entropy": r"H_{\mathrm{end}}(\mathrm{BAPO}) > H_{\mathrm{end}}(0.8,\ 1.2)",
    "opefo-run": r"\textstyle\sum_i (1 \pm \lambda^*)\, \Delta H_i = 0 \ \Rightarrow\ H_t = H_0",
    "dppo-mask": over(
        r"|p - p_{\mathrm{old}}| > \delta \ \text{ stops likely tokens},",
        r"|r - 1| > \varepsilon \ \text{ stops unlikely ones}",
    ),
    "dppo-learning": r"\bar R(\text{DPPO}) > \bar R(\text{GRPO})",
    "delayed-loops": over(
        r"\text{loops that see } H_{t-k}:", r"k = 2 \ \Rightarrow\ \sqrt{\langle (H_t - H^*)^2 \rangle} < 0.1"
    ),
    "vespo-staleness": over(
        r"\nabla = -\varphi(w)\, A\, \nabla \log \pi, \quad w = \textstyle\prod_t r_t,",
        r"\varphi(w) = e^{\lambda} w^k e^{-\lambda w} \ \Rightarrow\ R_{\mathrm{end}} > R_{\mathrm{half}}",
    ),
    "repo-r-target": over(
        r"A \to |A|\,\bigl(\operatorname{sign} A - \zeta_t \log \pi\bigr),",
        r"\zeta_t \uparrow \ \text{ if } H < H_0 \ \Rightarrow\ H \to H_0",
    ),
    "adapo-target": over(r"r \le 1 + E_t, \quad \log E_{t+1} = \log E_t \pm \delta", r"\Rightarrow\ H \to H_0"),
    "aer-target": over(
        r"\mathcal{L} - c_t\,(1 - \bar R)\, H, \quad c_{t+1} = c_t \pm \delta", r"\Rightarrow\ H \to 0.4\, H_0"
    ),
    "papo-polarity": over(
        r"A \to (1 + \gamma \operatorname{sign} \Delta H_i)\, A",
        r"\Rightarrow\ H_{\mathrm{end}} > H_{\mathrm{end}}^{\mathrm{GRPO}}",
    ),
    "papo-target": over(
        r"A \to (1 + \gamma\, u \operatorname{sign} \Delta H_i)\, A, \quad u \propto H^* - H",
        r"\Rightarrow\ H \to H^*",
    ),
    "flexible-clip-bounds": over(
        r"r \le \frac{1 + b}{1 - a\, p_{\mathrm{old}}},\ a < 0",
        r"\Rightarrow\ H_{\mathrm{end}} > H_{\mathrm{end}}(\varepsilon = 0.2)",
    ),
    "flexible-clip-strategies": r"\varepsilon_{\mathrm{high}}(t),\ \varepsilon_{\mathrm{low}}(t) \ \Rightarrow\ "
    r"H_{\mathrm{end}} > H_{\mathrm{end}}(\varepsilon = 0.2) + 0.1",
    "trap-grpo": over(
        r"\pi_0(a^*) \ll \pi_0(a),\ q_{a^*} > q_a > q_b",
        r"\Rightarrow\ \pi_T(a^*) < \pi_T(a) \ \text{ under GRPO}",
    ),
    "trap-escape": over(
        r"P = \Pr\bigl(\pi_T(a^*) > \pi_T(a)\bigr) \ \text{ at } H = H^*:",
        r"\frac{\partial P}{\partial H^*},\ \frac{\partial P}{\partial G},\ \frac{\partial P}{\partial \eta} > 0",
    ),
    "trap-late": over(
        r"P = \Pr\bigl(\pi_{t+300}(a^*) > \pi_{t+300}(a)\bigr),",
        r"H_t \to 0 \ \Rightarrow\ P_t < \tfrac{1}{2} P_0",
    ),
    "trap-price": r"H \to H^* \ \Rightarrow\ \bar R_T > \bar R_T^{\mathrm{GRPO}}",
}
"""Statements by the name of their claim."""
