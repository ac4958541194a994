"use strict";
// The page: its head, its views, and the view that the address names.

let redraw = null;

function chosenRun() {
  return RUNS[Math.min(Math.max(Math.round(place.number("run", 0)), 0), RUNS.length - 1)];
}

function head(run) {
  const badge = (kind, text) => make("span", { class: `badge ${kind}` }, text);
  const verified = run.report.verified;
  const parts = [make("h1", {}, run.kernel)];
  if (run.status !== "done") parts.push(badge("bad", run.status.toUpperCase()));
  else if (verified === true) parts.push(badge("good", "VERIFIED"));
  else if (verified === false) parts.push(badge("bad", "NOT VERIFIED"));
  if (run.predicted) parts.push(badge("note", "PREDICTED CYCLES"));
  const sizes = Object.entries(run.report.params ?? {}).map(([name, value]) => `${name} = ${value}`);
  const about = [sizes.join(", "), run.report.dtype, `${run.backend} on ${run.config}`,
    `${thousands(run.cycles)} cycles`];
  parts.push(make("span.soft", {}, about.filter(Boolean).join(" · ")));
  if (RUNS.length > 1) {
    parts.push(make("select", { "aria-label": "run", onchange: (event) => {
      place.set({ run: event.target.value });
      open();
    } }, ...RUNS.map((each, number) => {
      const option = make("option", { value: number }, `${"AB"[number]}: ${each.kernel}, ${thousands(each.cycles)} cycles`);
      option.selected = each === run;
      return option;
    })));
  }
  document.getElementById("head").replaceChildren(...parts);
}

function open() {
  const run = chosenRun();
  const name = VIEWS[place.get("view")] ? place.get("view") : "overview";
  head(run);
  card.hide();
  document.getElementById("views").replaceChildren(...Object.entries(VIEWS).map(([key, view]) =>
    make("a", {
      href: place.href({ view: key }), role: "tab", "aria-selected": String(key === name),
      // With what has been set since this view was opened.
      onclick: (event) => { event.currentTarget.setAttribute("href", place.href({ view: key })); },
    }, view.title)));
  const main = document.getElementById("main");
  main.replaceChildren();
  const tall = document.getElementById("top").offsetHeight;
  document.documentElement.style.setProperty("--head", `${tall}px`);
  redraw = VIEWS[name].draw(main, run) ?? null;
}

addEventListener("hashchange", open);
addEventListener("resize", () => redraw?.());
open();
