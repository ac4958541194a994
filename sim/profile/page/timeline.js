"use strict";
// Timeline: a row per unit, its states as a strip, and a row per engine or stream with its blocks.

const ROW = { strip: 14, block: 17, left: 184, axis: 22 };
const HUES = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#7f7f7f"];

VIEWS.timeline = {
  title: "Timeline",
  draw(element, run) {
    const rows = timelineRows(run);
    const names = [...new Set(run.blocks.map((block) => block.name))].sort();
    const colours = new Map(names.map((name, at) => [name, HUES[at % HUES.length]]));
    const canvas = make("canvas.rows"), axis = make("canvas.axis");
    const search = make("input", { type: "search", placeholder: "search unit, buffer or stream" });
    search.value = place.get("search") ?? "";
    const whole = make("button", {}, "whole run");
    const about = make("span.soft", {}, "wheel: zoom, over the names: scroll · drag: move · click: set the cycle");
    const span = { from: place.number("from", 0), to: place.number("to", Math.max(run.cycles, 1)) };
    const state = { run, rows, colours, canvas, axis, span, cycle: place.number("cycle", -1), search: search.value };
    const again = () => requestAnimationFrame(() => paint(state));
    search.addEventListener("input", () => {
      state.search = search.value;
      place.set({ search: search.value });
      again();
    });
    whole.addEventListener("click", () => { Object.assign(span, { from: 0, to: run.cycles }); keep(span); again(); });
    pointer(state, again);
    element.append(make("section", {}, make("h2", {},
      run.predicted ? "Timeline, predicted by the machine model" : "Timeline, measured in RTL"),
    make("div.tools", {}, search, whole, about), stateLegend(), axis, canvas));
    again();
    return again;
  },
};

function stateLegend() {
  const marks = STATES.map((state) => {
    const mark = make("i");
    mark.style.background = STATE_COLOURS[state];
    return make("span", {}, mark, STATE_NAMES[state]);
  });
  return make("div.legend", {}, "a unit, by shares of its cycles:", ...marks,
    make("span", {}, make("i.line"), "before a block: it waits for room or its slot"));
}

function timelineRows(run) {
  const parts = new Map();
  for (const block of run.blocks) {
    if (!parts.has(block.unit)) parts.set(block.unit, new Map());
    const own = parts.get(block.unit);
    if (!own.has(block.part)) own.set(block.part, []);
    own.get(block.part).push(block);
  }
  const rows = [];
  for (const unit of run.units.filter((each) => each.used)) {
    rows.push({ unit, height: ROW.strip + 4, name: unit.name });
    const own = [...(parts.get(unit.name) ?? new Map())].sort(([a], [b]) => a.localeCompare(b));
    for (const [part, blocks] of own) {
      blocks.sort((a, b) => a.begin - b.begin);
      const name = blocks[0].name === part ? part : `${part} ${blocks[0].name}`;
      rows.push({ unit, part, blocks, height: ROW.block, name: `  ${name}` });
    }
  }
  let top = 2;
  for (const row of rows) { row.top = top; top += row.height; }
  return rows;
}

function keep(span) { place.set({ from: Math.round(span.from), to: Math.round(span.to) }); }

function paint(state) {
  const { canvas, rows, span, run } = state;
  const width = canvas.clientWidth || 900;
  const height = rows.length ? rows[rows.length - 1].top + ROW.block + 10 : 60;
  const pen = sized(canvas, width, height);
  const perCycle = (width - ROW.left) / Math.max(span.to - span.from, 1);
  const x = (cycle) => ROW.left + (cycle - span.from) * perCycle;
  pen.textBaseline = "top";
  scale(pen, state, x, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(ROW.left, 0, width - ROW.left, height);
  pen.clip();
  for (const row of rows) {
    if (row.part === undefined) strip(pen, run, row, x, span, width);
    else blocksOf(pen, row, x, state, width);
  }
  if (state.cycle >= 0) {
    pen.fillStyle = "#d0021b";
    pen.fillRect(x(state.cycle), 0, 1.5, height);
  }
  pen.restore();
  for (const row of rows) {
    const hit = state.search && matches(row, state.search);
    pen.fillStyle = hit ? "#a33c00" : row.part === undefined ? "#1d2430" : "#5c6675";
    pen.font = `${row.part === undefined || hit ? "600 " : ""}12px ui-monospace, monospace`;
    pen.fillText(row.name.slice(0, 25), 2, row.top + 1);
  }
}

// Pen of a canvas that has as many pixels as its place on the screen.
function sized(canvas, width, height) {
  const pixels = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = width * pixels;
  canvas.height = height * pixels;
  const pen = canvas.getContext("2d");
  pen.scale(pixels, pixels);
  return pen;
}

// Lines at round cycles, whose numbers stay in sight above the rows.
function scale(pen, { span, axis, cycle: marked }, x, width, height) {
  const top = sized(axis, width, ROW.axis);
  const wanted = (span.to - span.from) / 8;
  const base = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = [1, 2, 5, 10].map((each) => each * base).find((each) => each >= wanted) ?? base;
  top.font = "11px system-ui, sans-serif";
  top.textBaseline = "top";
  top.fillStyle = "#5c6675";
  top.fillText("cycle", 2, 4);
  for (let cycle = Math.ceil(span.from / step) * step; cycle <= span.to; cycle += step) {
    const at = Math.round(x(cycle));
    pen.fillStyle = "#e9edf2";
    pen.fillRect(at, 0, 1, height);
    top.fillStyle = "#9aa5b3";
    top.fillRect(at, ROW.axis - 6, 1, 6);
    top.fillStyle = "#5c6675";
    if (at < width - 50) top.fillText(thousands(cycle), at + 3, 4);
  }
  if (marked < span.from || marked > span.to) return;
  const words = thousands(marked), wide = top.measureText(words).width + 8;
  const left = Math.min(Math.max(x(marked) - wide / 2, ROW.left), width - wide);
  top.fillStyle = "#d0021b";
  top.fillRect(left, 2, wide, ROW.axis - 6);
  top.fillStyle = "#fff";
  top.fillText(words, left + 4, 4);
}

// States of a unit: in each column of pixels the shares of the cycles in it, one above another.
function strip(pen, run, row, x, span, width) {
  const edges = run.edges;
  const first = ROW.left, columns = Math.max(Math.ceil(width - first), 1);
  const sums = STATES.map(() => new Float64Array(columns));
  for (let at = Math.max(intervalAt(run, span.from), 0); at + 1 < edges.length && edges[at] < span.to; ++at) {
    const begin = x(edges[at]) - first, end = x(edges[at + 1]) - first;
    for (let column = Math.max(Math.floor(begin), 0); column < Math.min(end, columns); ++column) {
      const share = (Math.min(end, column + 1) - Math.max(begin, column)) / (end - begin);
      STATES.forEach((state, number) => { sums[number][column] += share * (row.unit.states[state][at] ?? 0); });
    }
  }
  for (let column = 0; column < columns; ++column) {
    const total = sums.reduce((sum, each) => sum + each[column], 0);
    if (!total) continue;
    let below = row.top + ROW.strip;
    STATES.forEach((state, number) => {
      const tall = (sums[number][column] / total) * ROW.strip;
      pen.fillStyle = STATE_COLOURS[state];
      pen.fillRect(first + column, below - tall, 1, tall);
      below -= tall;
    });
  }
}

function matches(row, text) {
  const words = text.toLowerCase();
  return row.name.toLowerCase().includes(words) || row.unit.labels.some((each) => each.toLowerCase().includes(words));
}

function blocksOf(pen, row, x, state, width) {
  const found = !state.search || matches(row, state.search);
  pen.globalAlpha = found ? 1 : 0.2;
  let drawn = -1;
  const colour = state.colours.get(row.blocks[0].name);
  for (const block of row.blocks) {
    const [left, right] = [x(block.begin), x(block.end)];
    if (right < ROW.left || left > width || right - drawn < 0.4) continue;
    const wide = Math.max(right - left, 0.8);
    pen.fillStyle = colour;
    const waits = x(block.ready);
    if (left - waits > 1) pen.fillRect(waits, row.top + 6, left - waits, 1.5);
    pen.fillRect(left, row.top + 1, wide > 3 ? wide - 0.7 : wide, ROW.block - 4);
    if (wide > 16) {
      pen.fillStyle = "#fff";
      pen.font = "11px system-ui, sans-serif";
      const seen = Math.min(right, width) - Math.max(left, ROW.left) - 6;
      const labels = block.number >= 0 ? [`${block.name} ${block.number}`, `${block.number}`] : [block.name];
      const label = labels.find((each) => pen.measureText(each).width <= seen);
      if (label) pen.fillText(label, Math.max(left, ROW.left) + 3, row.top + 3);
    }
    drawn = right;
  }
  pen.globalAlpha = 1;
}

function pointer(state, again) {
  const { canvas, span, run } = state;
  const cycleAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - ROW.left) / Math.max(box.width - ROW.left, 1);
    return span.from + share * (span.to - span.from);
  };
  let held = null;
  canvas.addEventListener("wheel", (event) => {
    if (event.clientX - canvas.getBoundingClientRect().left < ROW.left) return;
    event.preventDefault();
    const at = Math.min(Math.max(cycleAt(event), span.from), span.to);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const whole = Math.max(run.cycles, 1);
    span.from = Math.max(0, at - (at - span.from) * factor);
    span.to = Math.min(whole, Math.max(span.from + 8, at + (span.to - at) * factor));
    keep(span);
    again();
  }, { passive: false });
  const release = (event) => {
    if (!held.moved && event.target === canvas) {
      state.cycle = Math.max(0, Math.round(cycleAt(event)));
      place.set({ cycle: state.cycle });
      again();
    }
    if (held.moved) keep(span);
    held = null;
  };
  canvas.addEventListener("mousedown", (event) => {
    held = { x: event.clientX, ...span, moved: false };
    window.addEventListener("mouseup", release, { once: true });
  });
  canvas.addEventListener("mousemove", (event) => {
    if (held && Math.abs(event.clientX - held.x) > 3) {
      held.moved = true;
      const wide = Math.max(canvas.clientWidth - ROW.left, 1);
      const length = held.to - held.from;
      const by = ((held.x - event.clientX) / wide) * length;
      span.from = Math.min(Math.max(0, held.from + by), Math.max(0, run.cycles - length));
      span.to = span.from + length;
      again();
      return;
    }
    hover(state, event, cycleAt(event));
  });
  canvas.addEventListener("mouseleave", () => card.hide());
}

function hover(state, event, cycle) {
  const box = state.canvas.getBoundingClientRect();
  const y = event.clientY - box.top;
  const row = state.rows.find((each) => y >= each.top && y < each.top + each.height);
  if (!row) { card.hide(); return; }
  const block = row.blocks?.find((each) => cycle >= each.ready && cycle < each.end);
  if (!block) { card.show(event, describeUnit(state.run, row.unit, cycle)); return; }
  const number = block.number >= 0 ? ` ${block.number}` : "";
  const waits = block.begin > block.ready ? `\nwaits from ${thousands(block.ready)}` : "";
  card.show(event, `${block.unit} ${block.part}: ${block.name}${number}${waits}\n` +
    `cycles ${thousands(block.begin)} to ${thousands(block.end - 1)}: ${thousands(block.end - block.begin)}`);
}
