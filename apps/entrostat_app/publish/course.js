/** Let the slider of a lesson choose the runs that it shows, and the prediction say whether it was right. */
function teach(section) {
  const { unit, entries, names } = JSON.parse(section.querySelector("script").textContent);
  const find = (selector) => section.querySelector(selector);
  const slider = find("input[type=range]");
  const redraw = () => {
    const entry = entries[slider.valueAsNumber];
    section.querySelectorAll("svg.curves").forEach((svg, i) => draw(svg, entry.panels[i]));
  };
  const move = () => {
    const { value, right, verdict } = entries[slider.valueAsNumber];
    const guess = find("input[type=radio]:checked")?.value;
    const judged = guess === undefined ? "" : guess === right ? "As predicted. " : "Not as predicted. ";
    find(".value").textContent = `${value} ${unit}`.trim();
    slider.setAttribute("aria-valuetext", `${value} ${unit}`.trim());
    find(".answer").textContent = judged + verdict;
    redraw();
  };
  section.addEventListener("input", move);
  window.addEventListener("resize", redraw);
  move();
}

document.querySelectorAll("section.lesson").forEach(teach);
