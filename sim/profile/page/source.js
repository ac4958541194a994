"use strict";
// Source: the program after two passes side by side, with the lines marked that differ.

VIEWS.source = {
  title: "Source",
  draw(element, run) {
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
