"use strict";
// Floorplan: units at their places, streams on the links of the mesh, played over the run.

const TILE = { size: 112, gap: 64, edge: 92 };
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
    let timer = 0, cycle = Math.min(place.number("cycle", run.entries[0]?.begin ?? 0), last);
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
      make("div.tools", {}, play, pace, slider, shown), board.element,
      make("p.soft", {}, "A tile is filled by the share of its busy cycles around this cycle; a link is as " +
        "dark as the stream on it is dense. Hover tells what an element is and what it waits for.")));
    show();
    return null;
  },
  leave() {},
};

class Board {
  constructor(run) {
    this.run = run;
    this.cycle = 0;
    const { rows, columns } = run.mesh;
    const width = 2 * TILE.edge + columns * (TILE.size + TILE.gap) - TILE.gap;
    const height = rows * (TILE.size + TILE.gap) - TILE.gap + 24;
    this.element = draw("svg", {
      viewBox: `0 0 ${width} ${height}`, width: "100%", style: `max-width:${Math.max(width, 640)}px`,
    });
    this.fills = new Map();
    this.links = [];
    this.places = new Map();
    for (const unit of run.units) this.places.set(unit.name, this.corner(unit));
    for (const unit of run.units) this.unit(unit);
    this.streams();
  }

  corner(unit) {
    if (unit.kind !== "agcu") {
      const [row, column] = unit.at;
      return [TILE.edge + column * (TILE.size + TILE.gap), 12 + row * (TILE.size + TILE.gap)];
    }
    const [row, side] = this.run.mesh.agcus[unit.at[0]].split(" ");
    const { columns } = this.run.mesh;
    const x = side === "west" ? 4 : TILE.edge + columns * (TILE.size + TILE.gap) - TILE.gap + 30;
    return [x, 12 + Number(row) * (TILE.size + TILE.gap)];
  }

  unit(unit) {
    const [x, y] = this.places.get(unit.name);
    const wide = unit.kind === "agcu" ? TILE.edge - 34 : TILE.size;
    const hue = { pcu: "#0072b2", pmu: "#c47a00", agcu: "#3c8d40" }[unit.kind] ?? "#6b4fa0";
    const fill = draw("rect", { x, y: y + TILE.size, width: wide, height: 0, fill: hue, opacity: 0.45 });
    const group = draw("g", {},
      draw("rect", {
        x, y, width: wide, height: TILE.size, rx: 6, fill: unit.used ? "#fff" : "#f1f3f6",
        stroke: unit.used ? hue : "#d4dae2", "stroke-width": unit.used ? 1.6 : 1,
      }), fill);
    const words = [unit.name, ...unit.labels.map((each) => each.split(": ").slice(1).join(": "))];
    const most = unit.kind === "agcu" ? 9 : 18;
    words.slice(0, 4).forEach((line, number) => group.append(draw("text", {
      x: x + 6, y: y + 16 + 14 * number, "font-size": number ? 10 : 12,
      "font-weight": number ? 400 : 600, fill: unit.used ? "#1d2430" : "#9aa5b3",
    }, line.length > most ? `${line.slice(0, most - 1)}…` : line)));
    card.on(group, () => describeUnit(this.run, unit, this.cycle));
    this.element.append(group);
    if (unit.used) this.fills.set(unit, { fill, y, density: 0 });
  }

  streams() {
    const count = new Map();
    const vectors = this.run.routes.filter((route) => !route.tokens);
    vectors.forEach((route, number) => {
      const colour = HUES[number % HUES.length];
      for (const hop of route.hops) {
        const [row, column, way] = hop.split(" ");
        const step = STEP[way];
        if (!step) continue;
        const key = `${row} ${column} ${way}`;
        const lane = count.get(key) ?? 0;
        count.set(key, lane + 1);
        this.link(route, colour, Number(row), Number(column), step, lane);
      }
    });
  }

  link(route, colour, row, column, [dx, dy], lane) {
    const x = TILE.edge + column * (TILE.size + TILE.gap) + TILE.size / 2;
    const y = 12 + row * (TILE.size + TILE.gap) + TILE.size / 2;
    const aside = 10 + 13 * lane;  // to the right-hand side of its direction
    const [ox, oy] = [-dy * aside, dx * aside];
    const half = TILE.size / 2;
    const ends = [x + dx * half + ox, y + dy * half + oy,
      x + dx * (half + TILE.gap) + ox, y + dy * (half + TILE.gap) + oy];
    const line = draw("line", {
      x1: ends[0], y1: ends[1], x2: ends[2], y2: ends[3], stroke: colour, "stroke-width": 5,
      "stroke-dasharray": "7 4",
    });
    const near = draw("line", {
      x1: ends[0], y1: ends[1], x2: ends[2], y2: ends[3], stroke: "transparent", "stroke-width": 13,
    });
    card.on(near, () => `stream ${route.name}\n${route.sources.join(", ")} → ${route.sinks.join(", ")}\n` +
      `its source moves data in ${percent(this.density(route), 0)} of the cycles around here`);
    this.element.append(line, near);
    this.links.push({ route, line });
  }

  density(route) {
    const interval = intervalAt(this.run, this.cycle);
    const shares = this.run.units.filter((unit) => route.sources.includes(unit.name))
      .map((unit) => sharesAt(unit, interval)?.[0] ?? 0);
    return shares.length ? Math.max(...shares) : 0;
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
      line.setAttribute("opacity", 0.12 + 0.88 * dense);
      line.setAttribute("stroke-dashoffset", dense ? -((cycle / Math.max(this.run.cycles / 400, 1)) * 3) % 11 : 0);
    }
  }
}
