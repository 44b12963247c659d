// Rows: every body and static body at a time, sorted by the surface it is drawn with. See batch.py.

const ROW = 14; // position 3, quaternion w x y z, scale 3, colour 3, tag
const DISC = 2;

function toLinear(hex) {
  return [1, 3, 5].map((at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
}

class Rows {
  constructor({ head, arrays }) {
    this.head = head;
    this.arrays = arrays;
    this.count = head.row_count;
    this.places = new Float64Array(3 * this.count);
    this.turns = new Float32Array(4 * this.count);
    this.paints = new Float32Array(3 * this.count);
    this.shown = new Uint8Array(this.count).fill(1); // bodies come and go
    this.visible = new Uint8Array(this.count);
    this.surface = new Uint32Array(this.count);
    this.sorted = new Float32Array(ROW * this.count);
    this.tables = head.modes.map((mode) => Float32Array.from(mode.colors.flatMap(toLinear)));
    this.places.set(arrays.static_positions, 3 * head.body_count);
    this.turns.set(arrays.static_quaternions, 4 * head.body_count);
    for (let b = 0; b < head.body_count; b++) this.turns[4 * b] = 1; // balls are not turned
    for (let r = head.body_count; r < this.count; r++) this.paints.set(head.static_color, 3 * r);
  }

  // Bodies `share` of the way from frame a to frame b.
  move(a, b, share, mode) {
    const { positions, quaternions, turning, shown, kinematic } = this.arrays;
    const n = this.head.body_count, step = this.head.position_step;
    if (shown) this.shown.set(shown.subarray(n * a, n * a + n));
    for (let i = 0, pa = 3 * n * a, pb = 3 * n * b; i < 3 * n; i++, pa++, pb++) {
      this.places[i] = step * (positions[pa] + share * (positions[pb] - positions[pa]));
    }
    this.turn(quaternions, turning, a, b, share);
    if (kinematic) {
      const places = this.arrays["kinematic positions"], m = kinematic.length;
      for (let i = 0; i < 3 * m; i++) {
        const from = places[3 * m * a + i], to = places[3 * m * b + i];
        this.places[3 * kinematic[Math.floor(i / 3)] + (i % 3)] = step * (from + share * (to - from));
      }
      this.turn(this.arrays["kinematic quaternions"], kinematic, a, b, share);
    }
    const colors = this.arrays[`colors ${this.head.modes[mode].name}`], table = this.tables[mode];
    for (let i = 0; i < n; i++) {
      const from = 3 * colors[n * a + i], to = 3 * colors[n * b + i];
      for (let k = 0; k < 3; k++) this.paints[3 * i + k] = table[from + k] + share * (table[to + k] - table[from + k]);
    }
  }

  // Turn rows `share` of the way from frame a to frame b.
  turn(quaternions, rows, a, b, share) {
    const m = rows.length, q = [0, 0, 0, 0];
    for (let i = 0; i < m; i++) {
      let length = 0;
      for (let k = 0; k < 4; k++) {
        const start = quaternions[4 * (m * a + i) + k];
        q[k] = start + share * (quaternions[4 * (m * b + i) + k] - start);
        length += q[k] * q[k];
      }
      for (let k = 0; k < 4; k++) this.turns[4 * rows[i] + k] = q[k] / Math.sqrt(length || 1);
    }
  }

  // Sort the rows for a camera, places about its target. Returns the draws: surface, first row, count of rows.
  sort(camera, aspect, height) {
    const { models, radii, scales } = this.arrays, { target } = camera;
    const [right, up, back] = camera.axes(), { places } = this;
    const tall = Math.tan(camera.fov / 2), wide = tall * aspect, focal = height / 2 / tall;
    const aside = Math.hypot(1, wide), above = Math.hypot(1, tall);
    const counts = new Uint32Array(this.head.surfaces.length + 1);
    let near = Infinity, far = -Infinity;
    for (let r = 0; r < this.count; r++) {
      this.visible[r] = 0;
      if (!this.shown[r]) continue;
      const x = places[3 * r] - target[0], y = places[3 * r + 1] - target[1], z = places[3 * r + 2] - target[2];
      const depth = camera.distance - (x * back[0] + y * back[1] + z * back[2]), radius = radii[r];
      this.visible[r] = depth + radius > 0
        && Math.abs(x * right[0] + y * right[1] + z * right[2]) < 1.2 * (wide * depth + radius * aside)
        && Math.abs(x * up[0] + y * up[1] + z * up[2]) < 1.2 * (tall * depth + radius * above) ? 1 : 0;
      if (this.visible[r]) {
        near = Math.min(near, depth - radius);
        far = Math.max(far, depth + radius);
      }
      const pixels = (focal * radius) / Math.max(depth, 1e-3 * camera.distance);
      const { first, sizes } = this.head.models[models[r]];
      let level = 0;
      while (level < sizes.length && pixels > sizes[level]) level++;
      this.surface[r] = first + level;
      counts[first + level + 1]++;
    }
    for (let s = 1; s < counts.length; s++) counts[s] += counts[s - 1];
    const draws = this.head.surfaces
      .map((surface, s) => ({ ...surface, first: counts[s], count: counts[s + 1] - counts[s] }))
      .filter((draw) => draw.count > 0);
    for (let r = 0; r < this.count; r++) {
      if (!this.shown[r]) continue;
      let at = ROW * counts[this.surface[r]]++;
      for (let k = 0; k < 3; k++) this.sorted[at++] = places[3 * r + k] - target[k];
      for (let k = 0; k < 4; k++) this.sorted[at++] = this.turns[4 * r + k];
      for (let k = 0; k < 3; k++) this.sorted[at++] = scales[3 * r + k];
      for (let k = 0; k < 3; k++) this.sorted[at++] = this.paints[3 * r + k];
      this.sorted[at] = 1;
    }
    return { draws, near, far };
  }
}
