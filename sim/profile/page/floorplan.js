"use strict";
// Floorplan: units at their places, streams on the links of the mesh, played over the run.

const TILE = { size: 116, gap: 60, edge: 180 };
const KINDS = { pcu: "#0072b2", pmu: "#c47a00", agcu: "#3c8d40" };
const LINES = { length: 19, height: 12, most: 6 };
const STEP = { north: [0, -1], east: [1, 0], south: [0, 1], west: [-1, 0] };

VIEWS.floorplan = {
  title: "Floorplan",
  draw(element, run) {
    const board = new Board(run);
    const last = Math.max(run.cycles - 1, 0);
    const slider = make("input", { type: "range", min: 0, max: last, step: 1, "aria-label": "cycle" });
    const shown = make("b");
    const play = make("button", {}, "play");
    const pace = make("select", {}, ...[0.25, 1, 4].map((each) => {
      const option = make("option", { value: each }, `${each} ×`);
      option.selected = each === 1;
      return option;
    }));
    let timer = 0, cycle = Math.min(place.number("cycle", Math.round(last / 2)), last);
    const show = () => {
      slider.value = cycle;
      shown.textContent = `cycle ${thousands(cycle)}`;
      board.at(cycle);
    };
    const tick = () => {
      const step = (run.cycles / 400) * Number(pace.value);
      cycle = cycle + step >= last ? 0 : cycle + step;
      show();
      timer = requestAnimationFrame(tick);
    };
    const stop = () => {
      cancelAnimationFrame(timer);
      timer = 0;
      play.textContent = "play";
      place.set({ cycle: Math.round(cycle) });
    };
    play.addEventListener("click", () => {
      if (timer) { stop(); return; }
      play.textContent = "pause";
      timer = requestAnimationFrame(tick);
    });
    slider.addEventListener("input", () => {
      if (timer) stop();
      cycle = Number(slider.value);
      place.set({ cycle: Math.round(cycle) });
      show();
    });
    element.append(make("section", {}, make("h2", {}, "Streams on the mesh"),
      make("div.tools", {}, play, pace, slider, shown), planLegend(),
      make("div.wide", {}, board.element)));
    show();
    return null;
  },
};

const WORK = { pcu: "PCU, computes", pmu: "PMU, buffers", agcu: "AGCU, moves to and from memory" };

function planLegend() {
  const marks = Object.entries(KINDS).map(([kind, colour]) => {
    const mark = make("i");
    mark.style.background = colour;
    return make("span", {}, mark, WORK[kind]);
  });
  return make("div.legend", {}, ...marks,
    make("span", {}, "filled: share of busy cycles around this cycle"),
    make("span", {}, "dashes: a stream on a link, as dark as its source is busy"),
    make("span", {}, "hover: what it is, and for whom it waits now"));
}

// Lines of at most so many characters, broken between words.
function wrapped(text, length) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const now = lines[lines.length - 1];
    if (now && now.length + word.length + 1 > length) lines.push(word);
    else lines[lines.length - 1] = now ? `${now} ${word}` : word;
  }
  return lines.map((each) => (each.length > length ? `${each.slice(0, length - 1)}…` : each));
}

class Board {
  constructor(run) {
    this.run = run;
    this.cycle = 0;
    const { rows, columns } = run.mesh;
    const width = 2 * TILE.edge + columns * (TILE.size + TILE.gap) - TILE.gap;
    const height = rows * (TILE.size + TILE.gap) - TILE.gap + 24;
    this.element = draw("svg", {
      viewBox: `0 0 ${width} ${height}`, width: "100%", style: `max-width:${width}px;min-width:${width * 0.6}px`,
    });
    this.fills = new Map();
    this.links = [];
    this.places = new Map(run.units.map((unit) => [unit.name, this.corner(unit)]));
    for (const unit of run.units) this.unit(unit);
    this.streams();
  }

  corner(unit) {
    const down = (row) => 12 + row * (TILE.size + TILE.gap);
    if (unit.kind !== "agcu") {
      const [row, column] = unit.at;
      return [TILE.edge + column * (TILE.size + TILE.gap), down(row)];
    }
    const [row, side] = this.run.mesh.agcus[unit.at[0]].split(" ");
    const east = TILE.edge + this.run.mesh.columns * (TILE.size + TILE.gap);
    return [side === "west" ? TILE.edge - TILE.gap - TILE.size : east, down(Number(row))];
  }

  unit(unit) {
    const [x, y] = this.places.get(unit.name);
    const hue = KINDS[unit.kind] ?? "#6b4fa0";
    const fill = draw("rect", {
      class: "fill", x, y: y + TILE.size, width: TILE.size, height: 0, fill: hue, opacity: 0.3,
    });
    const group = draw("g", { "data-unit": unit.name },
      draw("rect", {
        x, y, width: TILE.size, height: TILE.size, rx: 6, fill: unit.used ? "#fff" : "#f1f3f6",
        stroke: unit.used ? hue : "#d4dae2", "stroke-width": unit.used ? 1.6 : 1,
      }), fill);
    const about = unit.labels.flatMap((each) =>
      wrapped(each.split(": ").slice(1).join(": "), LINES.length));
    const words = about.length > LINES.most ? [...about.slice(0, LINES.most - 1), "…"] : about;
    [unit.name, ...words].forEach((line, number) => group.append(draw("text", {
      x: x + 6, y: y + 16 + LINES.height * number + (number ? 2 : 0), "font-size": number ? 10 : 12,
      "font-weight": number ? 400 : 600, fill: unit.used ? "#1d2430" : "#9aa5b3",
    }, line)));
    card.on(group, () => describeUnit(this.run, unit, this.cycle));
    this.element.append(group);
    if (unit.used) this.fills.set(unit, { fill, y });
  }

  streams() {
    const count = new Map();
    const half = TILE.size / 2;
    const lane = (key) => {
      count.set(key, (count.get(key) ?? 0) + 1);
      return count.get(key) - 1;
    };
    const vectors = this.run.routes.filter((route) => !route.tokens);
    vectors.forEach((route, number) => {
      const colour = HUES[number % HUES.length];
      for (const hop of route.hops) {
        const [row, column, way] = hop.split(" ");
        if (!STEP[way]) continue;
        const middle = [TILE.edge + column * (TILE.size + TILE.gap) + half, 12 + row * (TILE.size + TILE.gap) + half];
        this.link(route, colour, middle, STEP[way], lane(hop));
      }
      for (const name of route.sources.filter((each) => this.run.units.some((unit) => unit.name === each && unit.kind === "agcu"))) {
        const [x, y] = this.places.get(name);
        const step = x < TILE.edge ? STEP.east : STEP.west;
        this.link(route, colour, [x + half, y + half], step, lane(name));
      }
    });
  }

  link(route, colour, [x, y], [dx, dy], lane) {
    const aside = 10 + 12 * lane;  // to the right-hand side of its direction
    const [ox, oy] = [-dy * aside, dx * aside];
    const half = TILE.size / 2;
    const ends = {
      x1: x + dx * half + ox, y1: y + dy * half + oy,
      x2: x + dx * (half + TILE.gap) + ox, y2: y + dy * (half + TILE.gap) + oy,
    };
    const line = draw("line", { ...ends, stroke: colour, "stroke-width": 5, "stroke-dasharray": "7 4" });
    const near = draw("line", { ...ends, "data-link": route.name, stroke: "transparent", "stroke-width": 12 });
    card.on(near, () => `stream ${route.name}\n${route.sources.join(", ")} → ${route.sinks.join(", ")}\n` +
      `around cycle ${thousands(this.cycle)} its source works in ${percent(this.density(route), 0)} of the cycles,\n` +
      `in the whole run in ${percent(this.load(route), 0)}`);
    this.element.append(line, near);
    this.links.push({ route, line });
  }

  sources(route) { return this.run.units.filter((unit) => route.sources.includes(unit.name)); }

  density(route) {
    const interval = intervalAt(this.run, this.cycle);
    return Math.max(0, ...this.sources(route).map((unit) => sharesAt(unit, interval)?.[0] ?? 0));
  }

  load(route) {
    const busy = this.sources(route).flatMap((unit) => unit.causes.filter((each) => each.cause === "busy"));
    return Math.max(0, ...busy.map((each) => each.cycles / Math.max(this.run.cycles, 1)));
  }

  at(cycle) {
    this.cycle = cycle;
    const interval = intervalAt(this.run, cycle);
    for (const [unit, { fill, y }] of this.fills) {
      const busy = sharesAt(unit, interval)?.[0] ?? 0;
      fill.setAttribute("height", busy * TILE.size);
      fill.setAttribute("y", y + TILE.size * (1 - busy));
    }
    for (const { route, line } of this.links) {
      const dense = this.density(route);
      line.setAttribute("opacity", 0.22 + 0.78 * dense);
      line.setAttribute("stroke-dashoffset", dense ? -((cycle / Math.max(this.run.cycles / 400, 1)) * 3) % 11 : 0);
    }
  }
}
