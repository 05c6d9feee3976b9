// The page: it asks the worker for the film of a world, plays it, and turns clicks into faults of a new world.
const HORIZON = 4000; // ms: every fault is over by then, as in the simulator
const STORES = ["store0", "store1", "store2"];
const RECEIVERS = ["receiver0", "receiver1"];
const ACTS = {
  source: [["kill", "kill"], ["cut off", "cut"], ["freeze", "stop"]],
  store: [["kill", "kill"], ["cut off", "cut"], ["wipe", "wipe"], ["slow disk", "slow"]],
  receiver: [["kill", "kill"], ["cut off", "cut"], ["freeze", "stop"]],
};
const WORDS = { kill: "killed", cut: "cut off", wipe: "wiped", slow: "slow disk", stop: "frozen" };
const SENDS = Array.from({ length: 35 }, (_, index) => [300 + 100 * index, 1]);
const SCENES = {
  calm: { faults: [] },
  death: { refill: false, faults: [["kill", "store1", "", 1000, 1500]] },
  refill: { faults: [["kill", "store1", "", 1000, 1500]] },
  election: { proxies: true, faults: [["kill", "source", "", 1000, 2800]] },
  loss: {
    rules: "5.3",
    faults: [["cut", "source", "store2", 250, 1700], ["kill", "source", "", 1500, 200], ["kill", "store0", "", 1500, 1500]],
  },
};
const by = (id) => document.getElementById(id);
const world = { seed: 7, rules: "safe", proxies: false, refill: true, drawn: false, faults: [] };
let film = null, now = 0, playing = true, last = 0, asked = 0, begun = 0;

// ------------------------------------------------------------------------------------------------- the world and its link

function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  world.seed = Number(given.get("seed") ?? 7) || 0;
  world.rules = given.get("rules") === "5.3" ? "5.3" : "safe";
  world.proxies = given.get("proxies") === "1";
  world.refill = given.get("refill") !== "0";
  world.drawn = given.get("drawn") === "1";
  world.faults = (given.get("faults") ?? "").split(";").filter(Boolean).map((text) => {
    const [act, who, other, at, span] = text.split(".");
    return [act, who, other, Number(at), Number(span)];
  }).filter(([act, who, , at, span]) => act in WORDS && [...STORES, ...RECEIVERS, "source"].includes(who) && at >= 0 && span > 0);
}

function writeLink() {
  const given = new URLSearchParams({ seed: world.seed, rules: world.rules });
  if (world.proxies) given.set("proxies", "1");
  if (!world.refill) given.set("refill", "0");
  if (world.drawn) given.set("drawn", "1");
  if (world.faults.length) given.set("faults", world.faults.map((fault) => fault.join(".")).join(";"));
  history.replaceState(null, "", "#" + given);
  by("link").href = "#" + given;
}

function schedule() {
  if (world.drawn) return { drawn: world.seed };
  const setup = {};
  if (world.rules === "5.3") setup.documented = true;
  if (world.proxies) setup.proxies = true;
  if (!world.refill) setup.refill = false;
  const faults = [...world.faults].sort((a, b) => a[3] - b[3]).map(([act, who, other, at_ms, span]) =>
    ({ at_ms, kind: act, who, other, span_ms: Math.max(1, Math.min(span, HORIZON - at_ms)), amount: Number(act === "cut") }));
  return { seed: world.seed, setup, sends: SENDS, faults };
}

// ------------------------------------------------------------------------------------------------------------- the worker

const worker = new Worker("worker.js", { type: "module" });
worker.onmessage = ({ data }) => {
  if (data.failed) return void (by("state").textContent = "The core cannot run here: " + data.failed);
  if (data.number !== asked) return;
  film = JSON.parse(data.film);
  document.body.dataset.answers = String(data.number);
  document.body.dataset.from = data.from;
  document.body.dataset.answered ??= String(Math.round(performance.now()));
  by("state").textContent = `The core ran this world in ${Math.round(performance.now() - begun)} ms.`;
  show();
};

function ask() {
  writeLink();
  asked += 1;
  begun = performance.now();
  by("state").textContent = film ? "The core runs ..." : "Loading the core ...";
  worker.postMessage({ number: asked, world: schedule() });
}

function strike(act, who) {
  const at = Math.min(HORIZON - 50, Math.max(1, Math.round(now)));
  if (world.drawn) { world.drawn = false; world.faults = []; }
  world.faults.push([act, who, "", at, Number(by("span").value)]);
  playing = true;
  ask();
}

// --------------------------------------------------------------------------------------------------------------- the cards

function element(name, properties = {}, ...inside) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
}

function card(name, kind, title) {
  const acts = element("div", { className: "acts" });
  for (const [label, act] of ACTS[kind]) {
    const button = element("button", { type: "button", textContent: label, onclick: () => strike(act, name) });
    button.dataset.act = act;
    acts.append(button);
  }
  const made = element("article", { className: "card", id: name },
    element("h3", {}, element("span", { textContent: title }), element("span", { className: "badges" })),
    element("div", { className: "strip" }), element("p"), element("div", { className: "chips" }), acts);
  return made;
}

by("sources").append(card("source", "source", "source"));
STORES.forEach((name) => by("stores").append(card(name, "store", name)));
RECEIVERS.forEach((name) => by("receivers").append(card(name, "receiver", name)));

function paint(name, look, badges, spans, text, chips) {
  const here = by(name);
  here.classList.toggle("dead", !look.alive);
  const all = [...(look.alive ? [] : [["dead", "bad"]]), ...(look.frozen ? [["frozen", "warn"]] : []), ...badges];
  here.querySelector(".badges").replaceChildren(...all.map(([word, kind]) => element("span", { className: "badge " + kind, textContent: word })));
  const most = Math.max(20, film.most);
  here.querySelector(".strip").replaceChildren(...spans.map(([first, stop, kind]) => {
    const part = element("i", { className: kind });
    part.style.left = `${(100 * first) / most}%`;
    part.style.width = `${(100 * (stop - first)) / most}%`;
    return part;
  }));
  here.querySelector("p").textContent = text;
  here.querySelector(".chips").replaceChildren(...chips);
}

const held = (state) => state === "REGISTERED" || state === "RENEWING";
const chip = (word, good) => element("span", { className: "badge " + (good ? "good" : "warn"), textContent: word });
const struck = (act, who, ms) => film.schedule.faults.some((fault) =>
  fault.kind === act && (fault.who === who || (act === "cut" && fault.other === who)) && fault.at_ms <= ms && ms < fault.at_ms + fault.span_ms);

const SEEN_MS = 400;  // A refill takes less than a frame, so its end is shown for a while.

function refill(name, ms) {
  const last = film.events.filter(([at, who, what]) => at <= ms && who === name && what.includes("Refill")).pop();
  if (last?.[2] === "RefillStarted") return ["refills", "warn"];
  return last?.[2] === "Refilled" && ms < last[0] + SEEN_MS ? ["refilled", "good"] : null;
}

function draw(frame) {
  const ms = frame.ms, source = frame.source;
  paint("source", source, [...(struck("cut", "source", ms) ? [["cut off", "bad"]] : []),
    source.stores.filter(held).length > 1 ? ["quorum", "good"] : ["no quorum", "warn"]], [[0, source.stable + 1, "read"]],
    `life ${source.life}, next ${source.next}, stable through ${source.stable < 0 ? "nothing" : source.stable}`,
    source.stores.map((state, index) => chip(`${index}: ${state.toLowerCase()}`, held(state))));
  frame.stores.forEach((store) => {
    const badges = [];
    if (struck("cut", store.name, ms)) badges.push(["cut off", "bad"]);
    if (store.waits) badges.push(["waits", "warn"]);
    const got = refill(store.name, ms);
    if (got) badges.push(got);
    if (store.slow) badges.push(["slow disk", "warn"]);
    if (store.proxies) badges.push(["stands in for the source", "good"]);
    const spans = store.disk.map(([first, stop, life]) => [first, stop, "life" + (life % 4)]);
    const count = store.disk.reduce((sum, [first, stop]) => sum + stop - first, 0);
    paint(store.name, store, badges, [...spans, ...store.holes.map(([first, stop]) => [first, stop, "hole"])],
      `${count} messages on disk` + (store.holes.length ? `, holes at ${store.holes.map(([a, b]) => (b - a > 1 ? `${a}..${b - 1}` : a)).join(", ")}` : ""), []);
  });
  frame.receivers.forEach((receiver) => {
    const count = receiver.consumed.reduce((sum, [first, stop]) => sum + stop - first, 0);
    paint(receiver.name, receiver, struck("cut", receiver.name, ms) ? [["cut off", "bad"]] : [],
      receiver.consumed.map(([first, stop]) => [first, stop, "read"]),
      `consumed ${count}` + (receiver.lost ? `, lost ${receiver.lost}` : ""),
      receiver.stores.slice(-3).map((state, index) => chip(`${index}: ${state.toLowerCase()}`, held(state))));
  });
}

// -------------------------------------------------------------------------------------------------------------------- time

function show() {
  film.most = Math.max(...film.frames.map((frame) => Math.max(frame.source.next, ...frame.stores.flatMap((store) => store.disk.map((span) => span[1])))));
  by("time").max = film.frames.length ? film.frames[film.frames.length - 1].ms : 0;
  by("seed").value = world.seed;
  by("rules").value = film.schedule.setup.documented ? "5.3" : "safe";
  by("proxies").checked = Boolean(film.schedule.setup.proxies);
  by("refill").checked = film.schedule.setup.refill !== false;
  by("faults").replaceChildren(...film.schedule.faults.map((fault, index) => {
    const line = element("li", { textContent: `${(fault.at_ms / 1000).toFixed(2)} s  ${fault.who}${fault.other ? " and " + fault.other : ""}: ${WORDS[fault.kind] ?? fault.kind} for ${(fault.span_ms / 1000).toFixed(1)} s` });
    line.dataset.ms = fault.at_ms;
    if (!world.drawn) line.append(element("button", { type: "button", textContent: "undo", onclick: () => {
      world.faults.sort((a, b) => a[3] - b[3]).splice(index, 1);
      ask();
    } }));
    return line;
  }));
  const broken = film.violations.map((one) => [one.ms, `${one.name}: ${one.text}`, true]);
  const lines = [...film.events.map(([ms, who, what]) => [ms, `${who.replace(/\.\d+$/, "")}: ${what}`, false]), ...broken].sort((a, b) => a[0] - b[0]);
  by("events").replaceChildren(...lines.map(([ms, text, bad]) => {
    const line = element("li", { textContent: `${(ms / 1000).toFixed(3)} s  ${text}`, className: bad ? "bad" : "" });
    line.dataset.ms = ms;
    return line;
  }));
  by("digest").textContent = film.digest;
  by("command").textContent = world.drawn ? `stablecast sim --first ${world.seed} --seeds 1 --digests` : "stablecast sim --replay schedule.json --digests";
  by("schedule").href = URL.createObjectURL(new Blob([JSON.stringify(film.schedule)], { type: "application/json" }));
  step();
}

function step() {
  if (!film || !film.frames.length) return;
  const end = film.frames[film.frames.length - 1].ms;
  now = Math.min(now, end);
  draw(film.frames[Math.min(film.frames.length - 1, Math.max(0, Math.floor(now / 20) - 1))]);
  by("time").value = now;
  by("now").textContent = `${(now / 1000).toFixed(2)} s`;
  for (const line of document.querySelectorAll("li[data-ms]")) line.classList.toggle("later", Number(line.dataset.ms) > now);
  const first = film.violations[0], verdict = by("verdict");
  const done = first ? now >= first.ms : now >= end;
  verdict.hidden = !done;
  verdict.classList.toggle("fine", !first);
  verdict.textContent = first
    ? `Broken at ${(first.ms / 1000).toFixed(3)} s: ${first.name}. ${first.text}. The same faults break nothing under the rules "safe".`
    : "All is settled, and no promise was broken: everything stable was delivered to both receivers.";
  by("play").textContent = playing && now < end ? "pause" : "play";
}

function tick(at) {
  if (playing && film) {
    now += Math.min(100, at - last) * Number(by("speed").value);
    step();
  }
  last = at;
  requestAnimationFrame(tick);
}

// ------------------------------------------------------------------------------------------------------------- the controls

by("play").onclick = () => {
  if (film && now >= Number(by("time").max)) { now = 0; playing = true; } else playing = !playing;
  step();
};
by("time").oninput = () => { now = Number(by("time").value); playing = false; step(); };
by("seed").onchange = () => { world.seed = Math.max(0, Math.trunc(Number(by("seed").value) || 0)); now = 0; ask(); };
by("rules").onchange = () => { world.rules = by("rules").value; world.drawn = false; ask(); };
by("proxies").onchange = () => { world.proxies = by("proxies").checked; world.drawn = false; ask(); };
by("refill").onchange = () => { world.refill = by("refill").checked; world.drawn = false; ask(); };
for (const button of document.querySelectorAll("[data-scene]")) {
  button.onclick = () => {
    const scene = SCENES[button.dataset.scene] ?? { faults: [] };
    Object.assign(world, { rules: "safe", proxies: false, refill: true, drawn: button.dataset.scene === "drawn" }, scene, { faults: scene.faults.map((fault) => [...fault]) });
    now = 0;
    playing = true;
    ask();
  };
}
addEventListener("hashchange", () => { readLink(); now = 0; ask(); });
readLink();
ask();
requestAnimationFrame(tick);
