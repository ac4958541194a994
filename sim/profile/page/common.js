"use strict";
// What every view uses: the data, colours, elements, and the state in the address.

const RUNS = JSON.parse(document.getElementById("data").textContent);
const STATES = ["busy", "wait_input", "wait_room", "idle"];
const STATE_COLOURS = { busy: "#0072b2", wait_input: "#e69f00", wait_room: "#cc79a7", idle: "#e3e7ed" };
const CAUSES = {
  busy: ["works", "#0072b2"],
  memory: ["waits for memory", "#d55e00"],
  port: ["waits for a full memory port", "#e69f00"],
  unit: ["waits for another unit's work", "#9a7bd0"],
  slots: ["waits for turns of slots", "#cc79a7"],
  done: ["has ended", "#c9d1db"],
  launch: ["no kernel runs", "#6b7583"],
  off: ["not used", "#eef1f5"],
};
const VIEWS = {};  // name: { title, draw(element, run) }

const place = (() => {
  const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return {
    get: (name) => read()[name],
    number: (name, otherwise) => {
      const found = Number.parseFloat(read()[name]);
      return Number.isFinite(found) ? found : otherwise;
    },
    // Changes fields of the address without a new entry in the history, and without a new page.
    set: (fields) => {
      const now = new URLSearchParams({ ...read(), ...fields });
      history.replaceState(null, "", `#${now}`);
    },
    href: (fields) => `#${new URLSearchParams({ ...read(), ...fields })}`,
  };
})();

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...children) {
  const [name, kind] = tag.split(".");
  const element = document.createElement(name);
  if (kind) element.className = kind;
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const thousands = (value) => Math.round(value).toLocaleString("en-US");
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

const card = {
  element: document.getElementById("card"),
  show(event, text) {
    this.element.textContent = text;
    this.element.hidden = false;
    const box = this.element.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const below = event.clientY + 14;
    const top = below + box.height < innerHeight ? below : event.clientY - box.height - 10;
    this.element.style.left = `${Math.max(4, left)}px`;
    this.element.style.top = `${Math.max(4, top)}px`;
  },
  hide() { this.element.hidden = true; },
  on(element, text) {
    element.addEventListener("mousemove", (event) => this.show(event, text()));
    element.addEventListener("mouseleave", () => this.hide());
  },
};

// Number of the interval of a run in which a cycle lies; -1 outside.
function intervalAt(run, cycle) {
  const edges = run.edges;
  if (!edges.length || cycle < edges[0] || cycle >= edges[edges.length - 1]) return -1;
  let low = 0, high = edges.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= cycle) low = middle; else high = middle;
  }
  return low;
}

// Share of each state of a unit in an interval.
function sharesAt(unit, interval) {
  if (interval < 0) return null;
  const counts = STATES.map((state) => unit.states[state][interval] ?? 0);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return total ? counts.map((count) => count / total) : null;
}

function describeUnit(run, unit, cycle) {
  const lines = [unit.name, ...unit.labels];
  const shares = sharesAt(unit, intervalAt(run, cycle));
  if (shares) {
    const now = STATES.map((state, at) => [state, shares[at]]).filter(([, share]) => share >= 0.005);
    lines.push(`around cycle ${thousands(cycle)}: ` +
      now.map(([state, share]) => `${state.replace("_", " ")} ${percent(share, 0)}`).join(", "));
  }
  const waits = unit.causes.filter((each) => !["busy", "off"].includes(each.cause)).slice(0, 3);
  for (const each of waits) {
    lines.push(`${CAUSES[each.cause]?.[0] ?? each.cause}${each.by ? ` (${each.by})` : ""}: ` +
      percent(each.cycles / run.cycles));
  }
  return lines.join("\n");
}
