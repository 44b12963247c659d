// Camera: an eye that turns about a target, z up. Matrices are in columns, as WebGL has them.

const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const unit = (a) => scaled(a, 1 / Math.hypot(...a));

// Right, up and back of somebody who looks along a direction with z up (y, when looking along z).
function lookAxes(forward) {
  const back = scaled(unit(forward), -1);
  const right = unit(cross(Math.abs(back[2]) < 0.9999 ? [0, 0, 1] : [0, 1, 0], back));
  return [right, cross(back, right), back];
}

class Camera {
  constructor({ eye, target, fov, narrowest }) {
    this.first = { eye, target, narrowest };
    this.fov = (fov * Math.PI) / 180;
    this.back = 1; // how many times as far as the first eye: all is seen in a narrow window too
    this.reset();
  }

  reset() {
    const away = sub(this.first.eye, this.first.target);
    this.target = [...this.first.target];
    this.climb = Math.asin(away[2] / Math.hypot(...away));
    this.distance = this.back * Math.hypot(...away);
    this.turn = Math.atan2(away[1], away[0]);
  }

  // Step back for a window that is too narrow for what the first eye sees, and forth again.
  fit(aspect) {
    const back = Math.max(1, this.first.narrowest / aspect);
    this.distance *= back / this.back;
    this.back = back;
  }

  // From the target to the eye.
  get away() {
    const flat = this.distance * Math.cos(this.climb);
    return [flat * Math.cos(this.turn), flat * Math.sin(this.turn), this.distance * Math.sin(this.climb)];
  }

  axes() {
    return lookAxes(scaled(this.away, -1));
  }

  orbit(dx, dy) {
    this.turn -= dx;
    this.climb = Math.max(-1.55, Math.min(1.55, this.climb + dy));
  }

  pan(dx, dy) { // in heights of the picture
    const [right, up] = this.axes();
    const size = 2 * this.distance * Math.tan(this.fov / 2);
    for (let k = 0; k < 3; k++) this.target[k] += size * (up[k] * dy - right[k] * dx);
  }

  zoom(factor) {
    this.distance = Math.max(1e-3, Math.min(1e7, this.distance * factor));
  }

  // From coordinates about the target to the screen.
  matrix(aspect, near, far) {
    const [right, up, back] = this.axes();
    const f = 1 / Math.tan(this.fov / 2);
    const rows = [scaled(right, f / aspect), scaled(up, f)];
    const a = (far + near) / (near - far), b = (2 * far * near) / (near - far);
    const depth = -this.distance; // of the target, seen from the eye
    return new Float32Array([
      rows[0][0], rows[1][0], a * back[0], -back[0],
      rows[0][1], rows[1][1], a * back[1], -back[1],
      rows[0][2], rows[1][2], a * back[2], -back[2],
      0, 0, a * depth + b, -depth,
    ]);
  }
}
