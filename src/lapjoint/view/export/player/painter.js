// Painter: the WebGL side. One instanced draw per surface, a shadow map, planes and the background.

const SHADOW_SIZE = 2048;
const FIELDS = [["in_position", 3, 0], ["in_quaternion", 4, 3], ["in_scale", 3, 7], ["in_color", 4, 10]];

class Painter {
  constructor(canvas, { head, arrays }) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("This page draws with WebGL 2, which this browser does not offer.");
    this.gl = gl;
    this.canvas = canvas;
    this.head = head;
    this.programs = {};
    for (const [name, sources] of Object.entries(head.programs)) this.programs[name] = this.program(sources);
    this.vertices = this.buffer(gl.ARRAY_BUFFER, arrays.vertices, gl.STATIC_DRAW);
    this.indices = this.buffer(gl.ELEMENT_ARRAY_BUFFER, arrays.indices, gl.STATIC_DRAW);
    this.rows = this.buffer(gl.ARRAY_BUFFER, 4 * ROW * Math.max(head.row_count, 1), gl.DYNAMIC_DRAW);
    this.square = this.buffer(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
    this.makeShadowMap();
  }

  buffer(target, content, usage) {
    const buffer = this.gl.createBuffer();
    this.gl.bindBuffer(target, buffer);
    this.gl.bufferData(target, content, usage);
    return buffer;
  }

  program(sources) {
    const gl = this.gl, program = gl.createProgram();
    [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].forEach((kind, i) => {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, sources[i]);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    });
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`A shader was refused: ${gl.getProgramInfoLog(program)} ${logs.join(" ")}`);
    }
    const uniforms = {};
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const { name, type } = gl.getActiveUniform(program, i);
      uniforms[name] = { place: gl.getUniformLocation(program, name), type };
    }
    const place = (name) => gl.getAttribLocation(program, name);
    const attributes = Object.fromEntries(
      ["in_vertex", "in_normal", "in_corner", ...FIELDS.map(([name]) => name)].map((name) => [name, place(name)]),
    );
    return { program, uniforms, attributes, array: gl.createVertexArray() };
  }

  makeShadowMap() {
    const gl = this.gl;
    this.shadowMap = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_SIZE, SHADOW_SIZE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL);
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
      gl.texParameteri(gl.TEXTURE_2D, filter, gl.LINEAR);
    }
    for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
    this.shadowFrame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowMap, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  use(name, values) {
    const gl = this.gl, program = this.programs[name];
    gl.useProgram(program.program);
    gl.bindVertexArray(program.array);
    for (const [key, { place, type }] of Object.entries(program.uniforms)) {
      if (type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place, false, values[key]);
      else if (type === gl.FLOAT_VEC4) gl.uniform4fv(place, values[key]);
      else if (type === gl.FLOAT_VEC3) gl.uniform3fv(place, values[key]);
      else if (type === gl.FLOAT_VEC2) gl.uniform2fv(place, values[key]);
      else if (type === gl.FLOAT) gl.uniform1f(place, values[key]);
      else gl.uniform1i(place, 0); // the shadow map
    }
    return program;
  }

  // Draw rows with the program of their surface's kind.
  drawBodies(names, draws, values) {
    const gl = this.gl;
    for (const [name, isDisc] of [[names[0], false], [names[1], true]]) {
      const mine = draws.filter((draw) => (draw.kind === DISC) === isDisc);
      if (!mine.length) continue;
      const { attributes } = this.use(name, values);
      const field = (key, size, stride, offset, divisor) => {
        const place = attributes[key];
        if (place < 0) return;
        gl.enableVertexAttribArray(place);
        gl.vertexAttribPointer(place, size, gl.FLOAT, false, stride, offset);
        gl.vertexAttribDivisor(place, divisor);
      };
      gl.bindBuffer(gl.ARRAY_BUFFER, this.vertices);
      field("in_vertex", 3, 24, 0, 0);
      field("in_normal", 3, 24, 12, 0);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.rows);
      for (const draw of mine) {
        if (draw.kind === 0) gl.enable(gl.CULL_FACE);
        else gl.disable(gl.CULL_FACE);
        for (const [key, size, at] of FIELDS) field(key, size, 4 * ROW, 4 * (ROW * draw.first + at), 1);
        gl.drawElementsInstanced(gl.TRIANGLES, draw.index_count, gl.UNSIGNED_INT, 4 * draw.first_index, draw.count);
      }
    }
    gl.disable(gl.CULL_FACE);
  }

  drawSquare(name, values) {
    const gl = this.gl, place = this.use(name, values).attributes.in_corner;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.square);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 2, gl.FLOAT, false, 0, 0);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  draw(rows, camera) {
    const gl = this.gl, head = this.head, { width, height } = this.canvas;
    const aspect = width / height;
    let { draws, near, far } = rows.sort(camera, aspect, height);
    const shadow = shadowView(rows, head, camera.target, SHADOW_SIZE);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.rows);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, rows.sorted);
    const reach = 4 * camera.distance;
    if (!(near < far)) [near, far] = [0.5 * camera.distance, 2 * camera.distance];
    if (head.planes.length) [near, far] = [0, Math.max(far, reach + camera.distance)];
    const values = {
      view_projection: camera.matrix(aspect, Math.max(0.98 * near, 0.01 * camera.distance), 1.02 * far),
      shadow_matrix: shadow.lookup,
      shadow_projection: shadow.matrix,
      shadow_texel: shadow.texel,
      light: head.light,
      fill_light: head.fill_light,
      eye: camera.away,
      picture_height: height,
    };
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.bindTexture(gl.TEXTURE_2D, null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.viewport(0, 0, SHADOW_SIZE, SHADOW_SIZE);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.polygonOffset(1.5, 2);
    this.drawBodies(["body_shadow", "disc_shadow"], draws, values);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    gl.viewport(0, 0, width, height);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.polygonOffset(0, 0);
    this.drawBodies(["body", "disc"], draws, values);
    gl.polygonOffset(1, 4); // a body's face that lies in the plane is in front of it
    for (const plane of head.planes) this.drawPlane(plane, camera, reach, values);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.depthFunc(gl.LEQUAL);
    this.drawSquare("background", values);
    gl.depthFunc(gl.LESS);
  }

  drawPlane(plane, camera, reach, values) {
    const position = sub(plane.position, camera.target);
    if (dot(plane.normal, sub(camera.away, position)) <= 0) return;
    const [w, ...v] = plane.quaternion;
    const from = scaled(position, -1), t = scaled(cross(from, v), 2); // the target in the plane's frame
    const back = cross(t, v);
    const middle = [0, 1].map((k) => from[k] + w * t[k] + back[k]);
    const length = camera.distance / 14, power = 10 ** Math.floor(Math.log10(length));
    const away = (step) => Math.abs(Math.log((step * power) / length));
    const grid = power * [1, 2, 5, 10].reduce((a, b) => (away(b) < away(a) ? b : a));
    this.drawSquare("plane", {
      ...values, position, quaternion: plane.quaternion, plane_normal: plane.normal, middle, reach, grid,
    });
  }
}
