"use strict";
// What the script adds to the page: the replicas at any moment, filters, a magnifier. All its texts
// are in the page's data. Without the script, the tables below the scenes remain.
for (const diagram of document.querySelectorAll(".diagram")) {
  const section = diagram.closest("section");
  const scenes = JSON.parse(section.querySelector("script.data").textContent);
  const tools = section.querySelector(".tools");
  const panel = document.getElementById("panel");
  const moments = [...diagram.querySelectorAll(".moment")];
  let chosen = null;

  const take = (known, change) => {
    for (const name of ["role", "term", "hw", "producers", "others"]) {
      if (name in change) known[name] = change[name];
    }
    if ("start" in change) known.log = known.log.filter((line) => line[0] >= change.start);
    if ("cut" in change) known.log = known.log.filter((line) => line[0] < change.cut);
    if ("told" in change) {
      known.producers = { ...known.producers, ...change.told };
      for (const [id, said] of Object.entries(change.told)) {
        if (said === null) delete known.producers[id];
      }
    }
    if ("skip" in change) {
      known.more += known.log.length + change.skip;
      known.log = [];
    }
    if ("add" in change) known.log = known.log.concat(change.add);
  };

  const stateAt = (moment) => {
    const scene = scenes[Number(moment.closest(".scene").dataset.scene)];
    const nodes = structuredClone(scene.base);
    for (const known of Object.values(nodes)) {
      for (const name of ["log", "producers"]) {
        if (typeof known[name] === "string") known[name] = nodes[known[name]][name];
      }
    }
    for (const each of moment.closest(".scene").querySelectorAll(".moment")) {
      for (const [node, change] of scene.moments[each.dataset.s] || []) take(nodes[node], change);
      if (each === moment) break;
    }
    return nodes;
  };

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const colour = (term) => (term > 0 ? "t" + (((term - 1) % 7) + 1) : "t0");

  const entry = (line, known, nodes) => {
    const [index, off, term, said, chain] = line;
    const open = off !== null && off >= known.hw;
    const differs = Object.values(nodes).some((other) =>
      other.log.some((each) => each[0] === index && each[4] !== chain));
    const kinds = ["entry", colour(term)].concat(open ? "open" : [], differs ? "differs" : []);
    const made = element("span", kinds.join(" "), said + (open ? "+" : "") + (differs ? "!" : ""));
    made.title = "entry " + index + ", term " + term;
    return made;
  };

  const row = (node, known, nodes) => {
    const made = element("tr");
    made.append(element("th", "", node), element("td", "", known.role));
    const term = element("td", "n");
    term.append(element("span", "chip " + colour(known.term), known.term));
    made.append(term, element("td", "n", known.role === "down" ? "" : known.hw));
    const log = element("td", "log");
    const shown = known.log.slice(-14);
    const more = (known.more || 0) + known.log.length - shown.length;
    if (more > 0) log.append(element("span", "more", more + " before"), " ");
    for (const line of shown) log.append(entry(line, known, nodes), " ");
    const producers = element("td", "producers");
    for (const [id, said] of Object.entries(known.producers)) {
      producers.append(element("div", "", id + ": " + said));
    }
    if (known.others) producers.append(element("div", "more", "and others"));
    made.append(log, producers);
    return made;
  };

  const show = (moment) => {
    if (chosen) chosen.classList.remove("on");
    chosen = moment;
    moment.classList.add("on");
    const nodes = stateAt(moment);
    const table = element("table");
    table.append(element("caption", "", moment.querySelector("title").textContent));
    const head = element("tr");
    for (const name of ["node", "role", "term", "high watermark", "end of its log", "producers"]) {
      head.append(element("th", "", name));
    }
    table.append(head);
    for (const [node, known] of Object.entries(nodes)) table.append(row(node, known, nodes));
    const box = element("div", "states");
    box.append(table);
    const close = element("button", "", "close");
    close.type = "button";
    close.onclick = () => { panel.hidden = true; };
    panel.replaceChildren(close, box);
    panel.hidden = false;
  };

  for (const moment of moments) {
    moment.setAttribute("tabindex", "0");
    moment.addEventListener("click", () => show(moment));
    moment.addEventListener("focus", () => show(moment));
  }
  diagram.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "Escape") panel.hidden = true;
    if (!(event.key in steps) || !chosen) return;
    const next = moments[moments.indexOf(chosen) + steps[event.key]];
    if (next) {
      event.preventDefault();
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
    }
  });

  const filter = () => {
    const off = [...tools.querySelectorAll("[data-wire]")].filter((box) => !box.checked);
    const kinds = off.map((box) => "w-" + box.dataset.wire);
    for (const wire of diagram.querySelectorAll(".wire")) {
      wire.style.display = kinds.some((kind) => wire.classList.contains(kind)) ? "none" : "";
    }
    const wanted = tools.querySelector("[type=search]").value.trim();
    for (const moment of moments) {
      const said = moment.querySelector("title").textContent;
      moment.classList.toggle("dim", wanted !== "" && !said.includes(wanted));
    }
  };
  tools.hidden = false;
  tools.addEventListener("input", () => {
    const zoom = tools.querySelector("[type=range]").value / 100;
    diagram.style.setProperty("--zoom", zoom);
    diagram.classList.toggle("larger", zoom > 1);
    filter();
  });
  tools.addEventListener("submit", (event) => event.preventDefault());
}
