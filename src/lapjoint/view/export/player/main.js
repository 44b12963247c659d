// Player: time runs, bodies follow, frames between the recorded ones are interpolated.

class Player {
  constructor(data) {
    this.head = data.head;
    this.times = data.head.times;
    this.time = this.times[0];
    this.playing = this.times.length > 1;
    this.speed = SPEEDS.indexOf(1);
    this.mode = Math.max(0, this.head.modes.findIndex((mode) => mode.name === this.head.mode));
    this.canvas = document.getElementById("canvas");
    this.camera = new Camera(this.head.camera);
    this.rows = new Rows(data);
    this.painter = new Painter(this.canvas, data);
    this.sharpest = Math.min(window.devicePixelRatio || 1, 2); // pixels drawn per pixel of the page
    this.sharpness = this.sharpest;
    this.drawnCount = 0;
    this.waiting = false;
    this.show = bindBar(this);
    bindPointer(this.canvas, this.camera, () => this.redraw());
    bindKeys(this);
    window.addEventListener("resize", () => this.resize());
    this.resize();
    this.redraw(true);
  }

  // ---- what a user can do

  toggle() {
    const last = this.times[this.times.length - 1];
    if (!this.playing && this.time >= last) this.time = this.times[0];
    this.playing = !this.playing && this.times.length > 1;
    this.redraw();
  }

  seek(time) {
    this.time = Math.max(this.times[0], Math.min(this.times[this.times.length - 1], time));
    this.redraw();
  }

  stepFrames(count) {
    this.playing = false;
    const { frame, share } = this.at(this.time);
    const start = count < 0 && share > 1e-6 ? frame + 1 : frame;
    this.seek(this.times[Math.max(0, Math.min(this.times.length - 1, start + count))]);
  }

  setSpeed(speed) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, speed));
    this.redraw(true);
  }

  setMode(mode) {
    this.mode = mode;
    this.redraw(true);
  }

  resize() {
    this.camera.fit(this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
    this.redraw();
  }

  home() {
    this.camera.reset();
    this.redraw();
  }

  // ---- drawing

  // The frame before a time, and how far on it is to the next.
  at(time) {
    let low = 0, high = this.times.length - 1;
    while (high - low > 1) {
      const half = (low + high) >> 1;
      if (this.times[half] <= time) low = half;
      else high = half;
    }
    const length = this.times[high] - this.times[low];
    const share = length > 0 ? Math.max(0, Math.min(1, (time - this.times[low]) / length)) : 0;
    return share > 1 - 1e-9 ? { frame: high, share: 0 } : { frame: low, share };
  }

  redraw(changed = false) {
    this.changed = this.changed || changed;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((now) => this.draw(now));
  }

  draw(now) {
    this.waiting = false;
    if (this.playing && this.last !== undefined) {
      this.time += Math.min((now - this.last) / 1000, 0.25) * SPEEDS[this.speed];
      this.adapt(now - this.last);
      const end = this.times[this.times.length - 1];
      if (this.time >= end) [this.time, this.playing] = [end, false];
    }
    this.last = this.playing ? now : undefined;
    const pixels = this.playing ? this.sharpness : this.sharpest;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * pixels));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * pixels));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      [this.canvas.width, this.canvas.height] = [width, height];
    }
    const { frame, share } = this.at(this.time);
    this.rows.move(frame, Math.min(frame + 1, this.times.length - 1), share, this.mode);
    this.painter.draw(this.rows, this.camera);
    this.show(this.changed);
    this.changed = false;
    this.drawnCount++;
    if (this.playing) this.redraw();
  }

  // Where drawing is slow, draw fewer pixels while it plays.
  adapt(interval) {
    this.interval = 0.9 * (this.interval ?? 16) + 0.1 * interval;
    if (this.interval > 70 && this.sharpness > 0.5) {
      this.sharpness *= 0.8;
      this.interval = 16;
    }
  }
}

async function start() {
  const notice = document.getElementById("notice");
  try {
    const data = await loadData();
    window.player = new Player(data);
    notice.textContent = "";
  } catch (error) {
    notice.textContent = error.message;
    throw error;
  }
}

start();
