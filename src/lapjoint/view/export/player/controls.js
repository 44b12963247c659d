// Controls: pointer, keys and the bar at the foot.

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 4];

function bindPointer(canvas, camera, redraw) {
  const pointers = new Map();
  const middle = () => {
    const all = [...pointers.values()], count = all.length;
    const x = all.reduce((sum, p) => sum + p.x, 0) / count, y = all.reduce((sum, p) => sum + p.y, 0) / count;
    return { x, y, spread: Math.max(...all.map((p) => Math.hypot(p.x - x, p.y - y)), 1) };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = middle();
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const after = middle(), size = canvas.clientHeight;
    const dx = (after.x - before.x) / size, dy = (after.y - before.y) / size;
    if (pointers.size > 1) {
      camera.pan(dx, dy);
      camera.zoom(before.spread / after.spread);
    } else if (event.buttons & 6 || event.shiftKey) {
      camera.pan(dx, dy);
    } else {
      camera.orbit(4 * dx, 3 * dy);
    }
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.zoom(Math.exp(0.0012 * event.deltaY * (event.deltaMode ? 16 : 1)));
    redraw();
  }, { passive: false });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
}

function bindKeys(player) {
  const keys = {
    " ": () => player.toggle(),
    ArrowLeft: (event) => player.stepFrames(event.shiftKey ? -10 : -1),
    ArrowRight: (event) => player.stepFrames(event.shiftKey ? 10 : 1),
    ArrowUp: () => player.setSpeed(player.speed + 1),
    ArrowDown: () => player.setSpeed(player.speed - 1),
    Home: () => player.seek(player.times[0]),
    End: () => player.seek(player.times[player.times.length - 1]),
    r: () => player.home(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const number = Number(event.key) - 1;
    const act = keys[event.key.length > 1 ? event.key : event.key.toLowerCase()];
    if (act) act(event);
    else if (event.key.length === 1 && number >= 0 && number < player.head.modes.length) player.setMode(number);
    else return;
    event.preventDefault();
  });
}

function bindBar(player) {
  const element = (id) => document.getElementById(id);
  const options = (select, texts) => texts.forEach((text, value) => select.add(new Option(text, value)));
  options(element("speed"), SPEEDS.map((speed) => `${speed}×`));
  options(element("mode"), player.head.modes.map((mode) => mode.name));
  element("play").onclick = () => player.toggle();
  element("home").onclick = () => player.home();
  element("scrub").oninput = (event) => {
    const [first, last] = [player.times[0], player.times[player.times.length - 1]];
    player.seek(first + (last - first) * (event.target.value / 1000));
  };
  element("speed").onchange = (event) => player.setSpeed(Number(event.target.value));
  element("mode").onchange = (event) => player.setMode(Number(event.target.value));
  const { body_count: bodies, workers, times } = player.head;
  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
  element("facts").textContent = `${plural(bodies, "body").replace("bodys", "bodies")}, ${plural(workers, "worker")}`
    + `, ${plural(times.length, "frame")}`;
  return (changed) => { // show what is so now
    const [first, last] = [player.times[0], player.times[player.times.length - 1]];
    element("play").classList.toggle("playing", player.playing);
    element("scrub").value = last > first ? (1000 * (player.time - first)) / (last - first) : 0;
    element("clock").value = `${player.time.toFixed(2)} / ${last.toFixed(2)} s`;
    if (!changed) return;
    element("speed").value = player.speed;
    element("mode").value = player.mode;
    element("mode").title = player.head.modes[player.mode].about;
    element("legend").replaceChildren(...player.head.modes[player.mode].legend.map(({ text, color }) => {
      const line = document.createElement("span"), swatch = document.createElement("i");
      swatch.style.background = color;
      line.append(text, swatch);
      return line;
    }));
  };
}
