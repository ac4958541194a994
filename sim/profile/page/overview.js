"use strict";
// Overview: verdict, findings, cycles by cause, roofline, tensors.

VIEWS.overview = {
  title: "Overview",
  draw(element, run) {
    if (run.message) {
      element.append(make("section", {}, make("h2", {}, "How it ended"),
        make("div.message", {}, run.message)));
    }
    if (RUNS.length > 1) element.append(comparison());
    element.append(figures(run), findings(run), causesOf(run));
    element.append(make("div.columns", {}, roofline(run), tensors(run)));
  },
};

function figures(run) {
  const report = run.report;
  const all = [[run.predicted ? "predicted cycles" : "cycles", thousands(run.cycles)]];
  const rates = run.roofline;
  if (rates.macs) {
    const share = rates.macs / (run.cycles * rates.peak_macs);
    all.push(["of the peak of the arrays", percent(share)]);
  }
  all.push(["of the width of the memory ports",
    percent(rates.bytes / (run.cycles * rates.peak_bytes))]);
  if (!run.predicted && report.predicted_cycles) {
    all.push(["predicted cycles", thousands(report.predicted_cycles)]);
  }
  if (report.error_of_bound !== null && report.error_of_bound !== undefined) {
    all.push(["of the bound of the error against float64", report.error_of_bound.toFixed(3)]);
  }
  if (report.max_abs_err !== null && report.max_abs_err !== undefined) {
    all.push(["largest error against float64", report.max_abs_err.toExponential(2)]);
  }
  const boxes = all.map(([name, value]) =>
    make("div", {}, make("b", {}, value), make("span.soft", {}, name)));
  return make("section", {}, make("div.figures", {}, ...boxes));
}

function findings(run) {
  const rows = run.findings.map((each) => make("div.finding", {},
    make("div.share", {}, percent(Math.floor(100 * each.share + 0.5) / 100, 0)),
    make("div", {}, make("div", {}, each.text), make("div.advice", {}, each.advice))));
  if (rows.length) rows[0].firstChild.classList.add("first");
  const none = make("div.soft", {}, "No unit has worked.");
  return make("section", {}, make("h2", {}, "What held the run up"), ...(rows.length ? rows : [none]));
}

function legend(kinds) {
  const marks = kinds.map((kind) => {
    const mark = make("i");
    mark.style.background = CAUSES[kind]?.[1] ?? "#999";
    return make("span", {}, mark, CAUSES[kind]?.[0] ?? kind);
  });
  return make("div.legend", {}, ...marks);
}

// Cycles by cause as a bar; the whole run is 100 %.
function causeBar(run, name, all) {
  const order = Object.keys(CAUSES);
  const causes = [...all].sort((a, b) => order.indexOf(a.cause) - order.indexOf(b.cause));
  const bar = make("div.bar");
  for (const each of causes) {
    const part = make("div");
    part.style.width = `${(100 * each.cycles) / Math.max(run.cycles, 1)}%`;
    part.style.background = CAUSES[each.cause]?.[1] ?? "#999";
    card.on(part, () => `${name}\n${CAUSES[each.cause]?.[0] ?? each.cause}` +
      `${each.by ? `: ${each.by}` : ""}\n${thousands(each.cycles)} cycles, ` +
      percent(each.cycles / Math.max(run.cycles, 1)));
    bar.append(part);
  }
  return bar;
}

function causesOf(run) {
  const grid = make("div.bars");
  const units = run.units.filter((unit) => unit.used);
  for (const unit of units) {
    const name = make("div.name", {}, unit.name);
    card.on(name, () => describeUnit(run, unit, place.number("cycle", 0)));
    grid.append(name, causeBar(run, unit.name, unit.causes));
  }
  const kinds = Object.keys(CAUSES).filter((kind) =>
    units.some((unit) => unit.causes.some((each) => each.cause === kind)));
  const off = run.units.length - units.length;
  return make("section", {},
    make("h2", {}, `Where the cycles of every unit went (100 % = ${thousands(run.cycles)} cycles)`),
    legend(kinds), grid,
    make("p.soft", {}, off ? `${off} further ${off === 1 ? "unit is" : "units are"} not used. ` : "",
      `Their area: tilewright area --config ${run.config}`));
}

function roofline(run) {
  const { macs, bytes, peak_macs: top, peak_bytes: slope } = run.roofline;
  const section = make("section", {}, make("h2", {}, "Roofline"));
  if (!macs || !bytes || !run.cycles) {
    const share = bytes / Math.max(run.cycles * slope, 1);
    section.append(make("div.soft", {}, `${macs ? "" : "The kernel has no products. "}Memory ` +
      `traffic takes ${percent(share)} of the width of the ports; the findings say what bounds the run.`));
    return section;
  }
  const rate = macs / run.cycles, intensity = macs / bytes;
  const knee = top / slope;
  const [w, h, left, bottom] = [460, 270, 62, 40];
  const xs = [Math.min(intensity, knee) / 8, Math.max(intensity, knee) * 8].map(Math.log2);
  const ys = [Math.min(rate, top) / 8, top * 2].map(Math.log2);
  const x = (v) => left + ((Math.log2(v) - xs[0]) / (xs[1] - xs[0])) * (w - left - 14);
  const y = (v) => h - bottom - ((Math.log2(v) - ys[0]) / (ys[1] - ys[0])) * (h - bottom - 14);
  const low = 2 ** xs[0], high = 2 ** xs[1], least = 2 ** ys[0];
  const begin = Math.max(low, least / slope);
  const picture = draw("svg", { viewBox: `0 0 ${w} ${h}`, width: "100%", role: "img" });
  const text = (at, over, words, anchor = "middle", extra = {}) =>
    draw("text", { x: at, y: over, "text-anchor": anchor, "font-size": 11, fill: "#5c6675", ...extra }, words);
  picture.append(
    draw("path", { d: `M${left} 10V${h - bottom}H${w - 10}`, fill: "none", stroke: "#9aa5b3" }),
    draw("path", {
      d: `M${x(begin)} ${y(begin * slope)}L${x(knee)} ${y(top)}H${x(high)}`,
      fill: "none", stroke: "#0b5cad", "stroke-width": 2,
    }),
    draw("line", {
      x1: x(intensity), x2: x(intensity), y1: y(rate), y2: y(Math.min(top, intensity * slope)),
      stroke: "#d55e00", "stroke-dasharray": "3 3",
    }),
    draw("circle", { cx: x(intensity), cy: y(rate), r: 6, fill: "#d55e00" }),
    text(x(high) - 4, y(top) - 6, `${thousands(top)} MAC per cycle`, "end"),
    text(w / 2 + 20, h - 8, "multiply-accumulates per byte read or written (log)"),
    ...(Math.abs(y(rate) - y(top)) > 12 ? [text(left - 8, y(top) + 4, thousands(top), "end")] : []),
    text(left - 8, y(rate) + 4, rate < 10 ? rate.toFixed(1) : thousands(rate), "end", { fill: "#d55e00" }),
    draw("text", {
      x: 14, y: (h - bottom) / 2, "font-size": 11, fill: "#5c6675", "text-anchor": "middle",
      transform: `rotate(-90 14 ${(h - bottom) / 2})`,
    }, "MAC per cycle (log)"),
    text(x(knee), h - bottom + 14, knee.toFixed(1)),
    text(x(intensity), h - bottom + 26 - 12 * (Math.abs(x(intensity) - x(knee)) > 40),
      intensity.toFixed(1), "middle", { fill: "#d55e00" }),
  );
  const bound = Math.min(top, intensity * slope);
  section.append(picture, make("div.soft", {}, `This run: ${percent(rate / bound)} of what its ` +
    `${intensity < knee ? "memory traffic" : "arrays"} would allow.`));
  return section;
}

function tensors(run) {
  const rows = run.tensors.map((each) => make("tr", {},
    make("td", {}, each.name), make("td", {}, each.shape.join(" × ")), make("td", {}, each.format),
    make("td", {}, each.output ? "written" : "read"), make("td", {}, thousands(each.bytes)),
    make("td", {}, thousands(each.moved)), make("td", {}, (each.moved / Math.max(each.bytes, 1)).toFixed(2))));
  const report = run.report;
  const moved = ["dram_bytes_read", "dram_bytes_written"]
    .map((name) => report[name]).filter((value) => typeof value === "number");
  const needed = run.tensors.reduce((sum, each) => sum + each.bytes, 0);
  const head = ["tensor", "shape", "format", "", "bytes needed", "bytes moved", "moved / needed"].map((name) => make("th", {}, name));
  const section = make("section", {}, make("h2", {}, "Tensors and memory traffic"),
    make("div.wide", {}, make("table", {}, make("tr", {}, ...head), ...rows)));
  if (moved.length === 2) {
    const all = moved[0] + moved[1];
    section.append(make("p.soft", {}, `${thousands(moved[0])} bytes read, ` +
      `${thousands(moved[1])} written: ${(all / Math.max(needed, 1)).toFixed(2)} times ` +
      `the ${thousands(needed)} bytes that have to move once. Image and launch list are included.`));
  }
  return section;
}

function comparison() {
  const [a, b] = RUNS;
  const lines = [["cycles", a.cycles, b.cycles]];
  const kinds = Object.keys(CAUSES).filter((kind) => kind !== "off");
  const mean = (run, kind) => {
    const units = run.units.filter((unit) => unit.used);
    const all = units.flatMap((unit) => unit.causes.filter((each) => each.cause === kind));
    return all.reduce((sum, each) => sum + each.cycles, 0) / Math.max(units.length, 1);
  };
  for (const kind of kinds) lines.push([CAUSES[kind][0], mean(a, kind), mean(b, kind)]);
  lines.push(["bytes of memory traffic", a.roofline.bytes, b.roofline.bytes]);
  const rows = lines.map(([name, one, other]) => {
    const change = other - one;
    const cell = make("td", {}, `${change > 0 ? "+" : ""}${thousands(change)}`);
    const share = make("td", {}, one ? `${change > 0 ? "+" : ""}${percent(change / one)}` : "");
    return make("tr", {}, make("td", {}, name), make("td", {}, thousands(one)),
      make("td", {}, thousands(other)), cell, share);
  });
  const names = RUNS.map((run, number) => `${"AB"[number]}: ${run.kernel} on ${run.config}, ${run.backend}`);
  const head = ["per unit in use, on average", "A", "B", "change", ""].map((name) => make("th", {}, name));
  return make("section", {}, make("h2", {}, "Two runs compared"), make("p.soft", {}, names.join(" · ")),
    make("div.wide", {}, make("table", {}, make("tr", {}, ...head), ...rows)));
}
