// The last 15 minutes as a stacked area: one column a second, the newest at the right.

const SVG = "http://www.w3.org/2000/svg";
const SECONDS = 900;
const HEIGHT = 100;

/** Draws `verdicts` ({key, label}) into `box`; `tell` gets the second under the pointer, or null. */
export class Chart {
  constructor(box, verdicts, tell) {
    this.verdicts = verdicts;
    this.tell = tell;
    this.svg = svg("svg", { viewBox: `0 0 ${SECONDS} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.grid = svg("path", { class: "grid", fill: "none" });
    this.areas = verdicts.map(({ key }) => svg("path", { class: key }));
    this.cursor = svg("path", { class: "cursor", fill: "none" });
    this.svg.append(this.grid, ...this.areas, this.cursor);
    this.yMarks = [1, 0.5, 0].map((share) => mark("y", "top", 1 - share));
    const xMarks = [0, 5, 10, 15].map((minute) => mark("x", null, 0, minute === 15 ? "now" : `−${15 - minute} min`));
    xMarks.forEach((label, index) => { label.style.left = `${(index / 3) * 100}%`; });
    xMarks.at(-1).classList.add("last");
    const times = document.createElement("div");
    times.className = "times";
    times.append(...xMarks);
    box.append(this.svg, times, ...this.yMarks);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.seconds = [];
  }

  /** `seconds`: the newest last, each {unix_s, checks}. */
  draw(seconds) {
    this.seconds = seconds.slice(-SECONDS);
    const totals = this.seconds.map(({ checks }) => this.verdicts.reduce((sum, { key }) => sum + checks[key], 0));
    const most = Math.max(...totals, 0);
    const top = ceiling(most);
    const y = (value) => HEIGHT * (1 - value / top);
    const left = SECONDS - this.seconds.length;
    let floor = this.seconds.map(() => 0);
    this.verdicts.forEach(({ key }, index) => {
      const roof = floor.map((value, second) => value + this.seconds[second].checks[key]);
      const isEmpty = roof.every((value, second) => value === floor[second]);
      this.areas[index].setAttribute("d", isEmpty ? "" : `${steps("M", left, roof, y)}${steps("L", left, floor, y, true)}Z`);
      floor = roof;
    });
    this.grid.setAttribute("d", `M0 0H${SECONDS}M0 ${HEIGHT / 2}H${SECONDS}`);
    [top, top / 2, 0].forEach((value, index) => { this.yMarks[index].textContent = value.toLocaleString("en-GB"); });
    const last = totals.at(-1) ?? 0;
    this.svg.setAttribute("aria-label", `Decisions a second over 15 minutes: ${last} in the last second, at most ${most}`);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const column = event && Math.floor(((event.clientX - box.left) / box.width) * SECONDS);
    const second = event ? this.seconds[column - SECONDS + this.seconds.length] : undefined;
    this.cursor.setAttribute("d", second ? `M${column + 0.5} 0V${HEIGHT}` : "");
    this.tell(second ?? null);
  }
}

// A second is a step and not a slope: nothing was counted between two.
function steps(move, left, values, y, back = false) {
  const columns = values.map((value, index) => {
    const ends = [left + index, left + index + 1];
    if (back) ends.reverse();
    return `${ends[0]} ${y(value).toFixed(2)}H${ends[1]}`;
  });
  if (back) columns.reverse();
  return move + columns.join("L");
}

/** The next of 2, 4, 6, 10, 12, 16, 20, 40, …: half of it is whole too. */
function ceiling(most) {
  for (let power = 1; ; power *= 10) {
    const found = [2, 4, 6, 10, 12, 16].find((step) => step * power >= most);
    if (found) return found * power;
  }
}

function mark(axis, side, share, text = "") {
  const label = document.createElement("span");
  label.className = `mark ${axis}`;
  label.textContent = text;
  if (side) label.style[side] = `${share * 100}%`;
  return label;
}

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
}
