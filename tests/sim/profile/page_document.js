"use strict";
// Opens a page of a profile without a browser: a document with what its scripts use, and no more.
// Draws every view, and plays the events of a user. Prints what was drawn, as JSON.

const fs = require("node:fs");
const vm = require("node:vm");

const page = fs.readFileSync(process.argv[2], "utf8");
const script = page.slice(page.lastIndexOf("<script>") + 8, page.lastIndexOf("</script>"));
const data = page.split('id="data">')[1].split("</script>")[0];

class Node {
  constructor(tag) {
    this.tag = tag;
    this.children = [];
    this.attributes = {};
    this.listeners = {};
    this.style = { setProperty() {} };
    this.hidden = false;
    this.own = "";
    this.clientWidth = 900;
    this.offsetHeight = 70;
    const names = new Set();
    this.classList = { add: (name) => names.add(name), contains: (name) => names.has(name) };
  }
  get value() {
    const option = this.children.find((each) => each.selected) ?? this.children[0];
    return this.given ?? (this.tag === "select" ? option?.attributes.value : undefined);
  }
  set value(text) { this.given = String(text); }
  get firstChild() { return this.children[0]; }
  get textContent() {
    return this.own + this.children.map((each) => each.textContent ?? String(each)).join("");
  }
  set textContent(text) { this.own = String(text); this.children = []; }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.own = ""; this.children = more; }
  setAttribute(name, value) {
    if (/NaN|Infinity|undefined/.test(String(value))) throw new Error(`${this.tag} ${name}=${value}`);
    this.attributes[name] = String(value);
    if (name === "value") this.value = String(value);
  }
  addEventListener(name, act) { (this.listeners[name] ??= []).push(act); }
  fire(name, event = {}) {
    const whole = { target: this, clientX: 400, clientY: 60, deltaY: -100, preventDefault() {}, ...event };
    for (const act of this.listeners[name] ?? []) act(whole);
  }
  getBoundingClientRect() { return { left: 0, top: 0, width: 900, height: 300 }; }
  getContext() {
    const count = (name) => (...numbers) => {
      if (numbers.some((each) => typeof each === "number" && !Number.isFinite(each))) {
        throw new Error(`${name}(${numbers})`);
      }
      drawn[name] = (drawn[name] ?? 0) + 1;
    };
    return new Proxy({}, { get: (own, name) => (name === "measureText" ? (text) => ({ width: 6 * text.length }) : own[name] ?? count(name)), set: () => true });
  }
  all() { return [this, ...this.children.flatMap((each) => (each instanceof Node ? each.all() : []))]; }
  find(tag) { return this.all().filter((each) => each.tag === tag); }
}

const drawn = {};
const elements = { data: new Node("script"), head: new Node("div"), views: new Node("nav"),
  main: new Node("main"), card: new Node("div"), top: new Node("header") };
elements.data.own = data;
const frames = [];
const world = {
  document: {
    documentElement: new Node("html"),
    getElementById: (id) => elements[id],
    createElement: (tag) => new Node(tag),
    createElementNS: (space, tag) => new Node(tag),
  },
  location: { hash: process.argv[3] ?? "" },
  listeners: {},
  devicePixelRatio: 1, innerWidth: 1200, innerHeight: 800,
  requestAnimationFrame: (act) => frames.push(act),
  cancelAnimationFrame: () => { frames.length = 0; },
  addEventListener: (name, act) => { (world.listeners[name] ??= []).push(act); },
  setTimeout: (act) => act(),
  URLSearchParams, console,
};
world.window = world;
world.history = { replaceState: (state, title, url) => { world.location.hash = url; } };
vm.runInNewContext(script, world);

const run = (most) => { for (let at = 0; at < most && frames.length; ++at) frames.shift()(); };
const report = {};
for (const link of elements.views.children) {
  const view = new URLSearchParams(link.attributes.href.slice(1)).get("view");
  world.location.hash = link.attributes.href;
  for (const act of world.listeners.hashchange) act();
  run(3);
  const cards = [];
  for (const node of elements.main.all()) {
    node.fire("mousemove");
    if (!elements.card.hidden && elements.card.textContent) cards.push(elements.card.textContent);
    node.fire("mouseleave");
  }
  for (const canvas of elements.main.find("canvas")) {
    canvas.fire("wheel");
    canvas.fire("mousedown");
    for (const act of world.listeners.mouseup ?? []) act({ clientX: 400, target: canvas });
  }
  for (const button of elements.main.find("button")) button.fire("click");
  for (const input of elements.main.find("input")) { input.value = input.value || "0"; input.fire("input"); }
  for (const select of elements.main.find("select")) { select.value = "0"; select.fire("change"); }
  run(5);
  report[view] = { text: elements.main.textContent, cards, hash: world.location.hash };
}
console.log(JSON.stringify({ head: elements.head.textContent, views: report, drawn }));
