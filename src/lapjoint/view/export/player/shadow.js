// Shadow: the light's own camera over the bodies in the picture. See light.py.

function shadowView(rows, head, target, size) {
  const axes = lookAxes(scaled(head.light, -1));
  const { radii, wanted } = rows.arrays;
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  const middle = head.focus.middle, reach = 2 * head.focus.radius;
  let front = -Infinity, any = false;
  for (let r = 0; r < rows.count; r++) {
    if (!rows.shown[r]) continue;
    const x = rows.places[3 * r], y = rows.places[3 * r + 1], z = rows.places[3 * r + 2], radius = radii[r];
    const along = (axis) => (x - target[0]) * axis[0] + (y - target[1]) * axis[1] + (z - target[2]) * axis[2];
    front = Math.max(front, along(axes[2]) + radius);
    const near = Math.hypot(x - middle[0], y - middle[1], z - middle[2]) < reach; // what flew far away does not count
    if (!rows.visible[r] || !wanted[r] || !near) continue;
    any = true;
    for (let k = 0; k < 3; k++) {
      const seen = along(axes[k]);
      low[k] = Math.min(low[k], seen - radius);
      high[k] = Math.max(high[k], seen + radius);
    }
  }
  if (!any) {
    low.fill(-1);
    high.fill(1);
    front = 1;
  }
  // Sizes go in steps and places in whole texels, so that shadows do not swim.
  let half = (1.02 * Math.max(high[0] - low[0], high[1] - low[1])) / 2;
  half = 1.1 ** Math.ceil(Math.log(half) / Math.log(1.1));
  const texel = (2 * half) / size;
  const x = Math.round((low[0] + high[0]) / 2 / texel) * texel;
  const y = Math.round((low[1] + high[1]) / 2 / texel) * texel;
  const depth = 1.02 * (front - low[2]) + 4 * texel;
  const [right, up, back] = axes;
  const matrix = new Float32Array([
    right[0] / half, up[0] / half, (-2 * back[0]) / depth, 0,
    right[1] / half, up[1] / half, (-2 * back[1]) / depth, 0,
    right[2] / half, up[2] / half, (-2 * back[2]) / depth, 0,
    -x / half, -y / half, (front + low[2]) / depth, 1,
  ]);
  // From -1 ... 1 to the map's 0 ... 1.
  const lookup = matrix.map((value, i) => (i % 4 === 3 ? value : 0.5 * value + (i >= 12 ? 0.5 : 0)));
  return { matrix, lookup, texel };
}
