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

// Fields of the address. A browser refuses many changes of an address in a short time, so it is
// written some time after the first of them.
const place = (() => {
  let fields = {}, waits = false;
  const read = () => { fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1))); };
  const href = (more = {}) => `#${new URLSearchParams({ ...fields, ...more })}`;
  read();
  addEventListener("hashchange", read);
  return {
    get: (name) => fields[name],
    number: (name, otherwise) => {
      const found = Number.parseFloat(fields[name]);
      return Number.isFinite(found) ? found : otherwise;
    },
    // Changes fields without a new entry in the history, and without a new page.
    set: (more) => {
      fields = { ...fields, ...more };
      if (waits) return;
      waits = true;
      setTimeout(() => {
        waits = false;
        history.replaceState(null, "", href());
      }, 100);
    },
    href,
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

const STATE_NAMES = { busy: "works", wait_input: "waits for input", wait_room: "waits for room", idle: "idle" };

// Units at the other ends of the streams of a unit, and what they do in an interval.
function neighbours(run, unit, interval, [own, other]) {
  const found = new Map();
  for (const route of run.routes) {
    if (route.tokens || !route[own].includes(unit.name)) continue;
    for (const name of route[other]) if (!found.has(name)) found.set(name, route.name);
  }
  return [...found].map(([name, stream]) => {
    const shares = sharesAt(run.units.find((each) => each.name === name) ?? unit, interval);
    return `  ${name} by ${stream}${shares ? `: works ${percent(shares[0], 0)}` : ""}`;
  });
}

// What each engine and stream of a unit does in a cycle: its block, or the slot or room it waits for.
function describeEngines(run, unit, cycle) {
  const now = run.blocks.filter((each) =>
    each.unit === unit.name && each.part && each.ready <= cycle && cycle < each.end);
  return now.slice(0, 6).map((each) => {
    const turn = each.number >= 0 ? ` ${each.number}` : "";
    const slot = each.part.startsWith("load") || each.part.startsWith("store") ? "room" : "its slot";
    const state = cycle < each.begin ? `waits for ${slot} from cycle ${thousands(each.ready)} to ${thousands(each.begin)}`
      : `moves in cycles ${thousands(each.begin)} to ${thousands(each.end - 1)}`;
    return `  ${each.part} ${each.name === each.part ? "" : each.name}${turn}: ${state}`;
  });
}

// What a unit does around a cycle, and for whom it waits then.
function describeNow(run, unit, cycle) {
  const interval = intervalAt(run, cycle);
  const shares = sharesAt(unit, interval);
  if (!shares) return [];
  const parts = STATES.map((state, at) => [state, shares[at]]).filter(([, share]) => share >= 0.005);
  const lines = [`around cycle ${thousands(cycle)}: ` +
    parts.map(([state, share]) => `${STATE_NAMES[state]} ${percent(share, 0)}`).join(", ")];
  if (shares[1] >= 0.05) lines.push(...neighbours(run, unit, interval, ["sinks", "sources"]));
  if (shares[2] >= 0.05) lines.push(...neighbours(run, unit, interval, ["sources", "sinks"]));
  return lines;
}

function describeUnit(run, unit, cycle) {
  const lines = [unit.name, ...unit.labels, ...describeNow(run, unit, cycle),
    ...describeEngines(run, unit, cycle)];
  if (!unit.used) return `${unit.name}: not used`;
  lines.push("in the whole run:");
  const waits = unit.causes.filter((each) => each.cause !== "off").slice(0, 4);
  for (const each of waits) {
    lines.push(`  ${CAUSES[each.cause]?.[0] ?? each.cause}${each.by ? ` (${each.by})` : ""}: ` +
      percent(each.cycles / run.cycles));
  }
  return lines.join("\n");
}
