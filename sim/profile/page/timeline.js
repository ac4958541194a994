"use strict";
// Timeline: a row per unit, its states as a strip, and a row per engine or stream with its blocks.

const ROW = { strip: 14, block: 17, left: 170, head: 24 };
const HUES = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#7f7f7f"];

VIEWS.timeline = {
  title: "Timeline",
  draw(element, run) {
    const rows = timelineRows(run);
    const names = [...new Set(run.blocks.map((block) => block.name))].sort();
    const colours = new Map(names.map((name, at) => [name, HUES[at % HUES.length]]));
    const canvas = make("canvas");
    const search = make("input", { type: "search", placeholder: "search unit, buffer or stream" });
    search.value = place.get("search") ?? "";
    const whole = make("button", {}, "whole run");
    const about = make("span.soft", {}, "wheel: zoom · drag: move · click: set the cycle");
    const span = { from: place.number("from", 0), to: place.number("to", Math.max(run.cycles, 1)) };
    const state = { run, rows, colours, canvas, span, cycle: place.number("cycle", -1), search: search.value };
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
    make("div.tools", {}, search, whole, about), stateLegend(), canvas));
    again();
    return again;
  },
};

function stateLegend() {
  const marks = STATES.map((state) => {
    const mark = make("i");
    mark.style.background = STATE_COLOURS[state];
    return make("span", {}, mark, state.replace("_", " "));
  });
  return make("div.legend", {}, ...marks, make("span", {}, "thin line before a block: it waits for room or its slot"));
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
  let top = ROW.head;
  for (const row of rows) { row.top = top; top += row.height; }
  return rows;
}

function keep(span) { place.set({ from: Math.round(span.from), to: Math.round(span.to) }); }

function paint(state) {
  const { canvas, rows, span, run } = state;
  const width = canvas.clientWidth || 900;
  const height = rows.length ? rows[rows.length - 1].top + ROW.block + 10 : 60;
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  const perCycle = (width - ROW.left) / Math.max(span.to - span.from, 1);
  const x = (cycle) => ROW.left + (cycle - span.from) * perCycle;
  axis(pen, span, x, width, height);
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
  pen.textBaseline = "top";
  for (const row of rows) {
    const hit = state.search && matches(row, state.search);
    pen.fillStyle = hit ? "#a33c00" : row.part === undefined ? "#1d2430" : "#5c6675";
    pen.font = `${row.part === undefined || hit ? "600 " : ""}12px ui-monospace, monospace`;
    pen.fillText(row.name.slice(0, 23), 2, row.top + 1);
  }
}

function axis(pen, span, x, width, height) {
  const wanted = (span.to - span.from) / 8;
  const base = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = [1, 2, 5, 10].map((each) => each * base).find((each) => each >= wanted) ?? base;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "top";
  for (let cycle = Math.ceil(span.from / step) * step; cycle <= span.to; cycle += step) {
    pen.fillStyle = "#e9edf2";
    pen.fillRect(x(cycle), ROW.head - 6, 1, height);
    pen.fillStyle = "#5c6675";
    if (x(cycle) < width - 40) pen.fillText(thousands(cycle), x(cycle) + 3, 4);
  }
}

// States of a unit: in each interval the shares, one above another.
function strip(pen, run, row, x, span, width) {
  const edges = run.edges;
  let drawn = -1;
  for (let at = 0; at + 1 < edges.length; ++at) {
    if (edges[at + 1] < span.from || edges[at] > span.to) continue;
    const [left, right] = [x(edges[at]), x(edges[at + 1])];
    if (right - drawn < 0.5) continue;
    const shares = sharesAt(row.unit, at);
    if (!shares) continue;
    let below = row.top + ROW.strip;
    const from = Math.max(left, drawn < 0 ? left : drawn);
    STATES.forEach((state, number) => {
      const tall = shares[number] * ROW.strip;
      pen.fillStyle = STATE_COLOURS[state];
      pen.fillRect(from, below - tall, Math.max(right - from, 0.6), tall);
      below -= tall;
    });
    drawn = Math.min(right, width);
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
    if (wide > 46) {
      pen.fillStyle = "#fff";
      pen.font = "11px system-ui, sans-serif";
      const label = block.number >= 0 ? `${block.name} ${block.number}` : block.name;
      pen.fillText(label.slice(0, Math.floor(wide / 7)), Math.max(left, ROW.left) + 3, row.top + 3);
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
    event.preventDefault();
    const at = Math.min(Math.max(cycleAt(event), span.from), span.to);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const whole = Math.max(run.cycles, 1);
    span.from = Math.max(0, at - (at - span.from) * factor);
    span.to = Math.min(whole, Math.max(span.from + 8, at + (span.to - at) * factor));
    keep(span);
    again();
  }, { passive: false });
  canvas.addEventListener("mousedown", (event) => { held = { x: event.clientX, ...span, moved: false }; });
  window.addEventListener("mouseup", (event) => {
    if (held && !held.moved && event.target === canvas) {
      state.cycle = Math.max(0, Math.round(cycleAt(event)));
      place.set({ cycle: state.cycle });
      again();
    }
    if (held?.moved) keep(span);
    held = null;
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
