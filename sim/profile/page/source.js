"use strict";
// Source: cycles and bytes of each line of the kernel; the program after two passes side by side.

VIEWS.source = {
  title: "Source",
  draw(element, run) {
    if (run.sources.length) element.append(kernelLines(run));
    const names = run.passes.map((each) => each.name);
    if (!names.length) {
      element.append(make("section", {}, "The profile has no text of the program."));
      return;
    }
    const first = Math.max(0, names.indexOf(place.get("left") ?? names[0]));
    const other = names.indexOf(place.get("right") ?? names[Math.min(first + 1, names.length - 1)]);
    const panes = [make("pre"), make("pre")];
    const choices = [first, Math.max(0, other)].map((chosen) => make("select", {
      onchange: () => { show(); },
    }, ...names.map((name, number) => {
      const option = make("option", { value: number }, name);
      if (number === chosen) option.selected = true;
      return option;
    })));
    const show = () => {
      const [left, right] = choices.map((choice) => run.passes[Number(choice.value)]);
      place.set({ left: left.name, right: right.name });
      fill(panes, left.text.split("\n"), right.text.split("\n"));
    };
    element.append(make("section", {}, make("h2", {}, "The program after each pass"),
      make("div.passes", {}, ...panes.map((pane, at) =>
        make("div", {}, make("label", {}, "after ", choices[at]), pane)))));
    show();
  },
};

// Causes in which a unit waits for another part of the run.
const WAITS = ["memory", "port", "unit", "slots"];

function kernelLines(run) {
  const units = byLine(run.units.filter((unit) => unit.used));
  const transfers = byLine(run.transfers);
  const head = ["cycles of its units", "works", "waits", "bytes moved", "line", ""];
  const rows = run.sources.flatMap((source, number) => {
    const lines = source.text.replace(/\n$/, "").split("\n").map((text, at) => {
      const line = source.first + at, key = `${number} ${line}`;
      return make("tr", { "data-line": key },
        ...lineCells(run, `${source.file}:${line}`, units.get(key) ?? [], transfers.get(key) ?? []),
        make("td.soft", {}, `${line}`), make("td", {}, make("pre", {}, text)));
    });
    return [make("tr.begin", {}, ...head.map((name, at) => make("td", {}, at === 5 ? source.file : ""))), ...lines];
  });
  const kinds = Object.keys(CAUSES).filter((kind) =>
    run.units.some((unit) => unit.used && unit.causes.some((each) => each.cause === kind)));
  return make("section", {}, make("h2", {}, "The kernel, line by line"), legend(kinds),
    make("div.wide", {}, make("table.kernel", {}, make("tr", {}, ...head.map((name) => make("th", {}, name))), ...rows)),
    make("p.soft", {}, "Works, waits: mean cycles of the units that work for a line. A unit that works for several " +
      "lines counts for each of them, as do the bytes of an array that several lines load or store. Hover tells which."));
}

function byLine(all) {
  const found = new Map();
  for (const each of all) {
    for (const key of each.lines) found.set(key, [...(found.get(key) ?? []), each]);
  }
  return found;
}

function lineCells(run, name, units, transfers) {
  if (!units.length && !transfers.length) return [make("td"), make("td"), make("td"), make("td")];
  const causes = meanCauses(units);
  const sum = (kinds) => causes.filter((each) => kinds.includes(each.cause))
    .reduce((total, each) => total + each.cycles, 0);
  const bar = make("td", {}, causeBar(run, name, causes));
  const works = make("td", {}, units.length ? thousands(sum(["busy"])) : "");
  const waits = make("td", {}, units.length ? thousands(sum(WAITS)) : "");
  const bytes = make("td", {}, transfers.length
    ? thousands(transfers.reduce((total, each) => total + each.bytes, 0)) : "");
  card.on(works, () => [name, ...units.map((unit) => `${unit.name}: ${thousands(busyCycles(unit))}`)].join("\n"));
  card.on(waits, () => [name, ...causes.filter((each) => WAITS.includes(each.cause)).map((each) =>
    `${CAUSES[each.cause][0]} (${each.by}): ${thousands(each.cycles)}`)].join("\n"));
  card.on(bytes, () => [name, ...transfers.map((each) =>
    `${each.tensor} ${each.output ? "stored" : "loaded"}: ${thousands(each.bytes)}`)].join("\n"));
  return [bar, works, waits, bytes];
}

function busyCycles(unit) {
  return unit.causes.filter((each) => each.cause === "busy").reduce((total, each) => total + each.cycles, 0);
}

// Mean over units of the cycles by cause and by whom, most first.
function meanCauses(units) {
  const found = new Map();
  for (const each of units.flatMap((unit) => unit.causes)) {
    const by = each.cause === "busy" ? "" : each.by;
    const key = `${each.cause} ${by}`;
    const before = found.get(key) ?? { cause: each.cause, by, cycles: 0 };
    found.set(key, { ...before, cycles: before.cycles + each.cycles / units.length });
  }
  return [...found.values()].sort((a, b) => b.cycles - a.cycles);
}

function fill(panes, left, right) {
  const same = commonLines(left, right);
  const sides = [[left, same.map(([a]) => a), "gone"], [right, same.map(([, b]) => b), "new"]];
  sides.forEach(([lines, kept, kind], at) => {
    const known = new Set(kept);
    panes[at].replaceChildren(...lines.map((line, number) =>
      make(known.has(number) ? "span" : `span.${kind}`, {}, line)));
  });
}

// Pairs of lines of a longest common subsequence.
function commonLines(left, right) {
  const [n, m] = [left.length, right.length];
  if (n * m > 4e6) return left.flatMap((line, at) => (line === right[at] ? [[at, at]] : []));
  const lengths = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
  for (let a = n - 1; a >= 0; --a) {
    for (let b = m - 1; b >= 0; --b) {
      lengths[a][b] = left[a] === right[b] ? lengths[a + 1][b + 1] + 1
        : Math.max(lengths[a + 1][b], lengths[a][b + 1]);
    }
  }
  const found = [];
  for (let a = 0, b = 0; a < n && b < m;) {
    if (left[a] === right[b]) found.push([a++, b++]);
    else if (lengths[a + 1][b] >= lengths[a][b + 1]) ++a;
    else ++b;
  }
  return found;
}
