/** Let the controls of a section choose the metric of its pictures, how smooth their lines are, and which are there. */
function choose(section) {
  const { metrics, pictures } = JSON.parse(section.querySelector("script").textContent);
  const find = (selector) => section.querySelector(selector);
  const [metric, slider] = [find("select"), find("input[type=range]")];
  const redraw = () => {
    const [number, weight] = [metric.selectedIndex, slider.valueAsNumber];
    const gone = [...section.querySelectorAll(".legend input:not(:checked)")].map((box) => Number(box.value));
    find(".value").textContent = slider.value;
    section.querySelectorAll("[data-metric]").forEach((part) => (part.hidden = Number(part.dataset.metric) !== number));
    section.querySelectorAll("svg.curves").forEach((svg, i) => {
      const found = pictures[i][number].filter(({ style }) => !gone.includes(style));
      draw(svg, { title: metrics[number], x_title: "step", series: found.map((line) => drawn(line, weight)) });
    });
  };
  section.addEventListener("input", redraw);
  window.addEventListener("resize", redraw);
  redraw();
}

document.querySelectorAll("section.runs").forEach(choose);
