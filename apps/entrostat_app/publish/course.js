/** Let the sliders of a lesson choose the runs that it shows, and the prediction say whether it was right. */
function teach(section) {
  const { unit, entries, live } = JSON.parse(section.querySelector("script").textContent);
  const find = (selector) => section.querySelector(selector);
  const [slider, ...others] = section.querySelectorAll("input[type=range]");
  const entry = () => {
    const settings = Object.fromEntries(others.map(({ name, valueAsNumber }) => [name, valueAsNumber]));
    return live ? lived(live, slider.valueAsNumber, settings) : entries[slider.valueAsNumber];
  };
  const redraw = () => {
    const { panels } = entry();
    section.querySelectorAll("svg.curves").forEach((svg, i) => draw(svg, panels[i]));
  };
  const move = () => {
    const { right, verdict } = entry();
    const guess = find("input[type=radio]:checked")?.value;
    const judged = guess === undefined ? "" : guess === right ? "As predicted. " : "Not as predicted. ";
    const value = `${entries[slider.valueAsNumber].value} ${unit}`.trim();
    find(".value").textContent = value;
    slider.setAttribute("aria-valuetext", value);
    others.forEach((other) => (other.previousElementSibling.textContent = other.value));
    find(".answer").textContent = judged + verdict;
    redraw();
  };
  section.addEventListener("input", move);
  window.addEventListener("resize", redraw);
  move();
}

document.querySelectorAll("section.lesson").forEach(teach);
